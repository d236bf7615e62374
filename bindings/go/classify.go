package tidegate

// #cgo noescape tidegate_go_classify
// #cgo nocallback tidegate_go_classify
// #include "native.h"
import "C"

import (
	"runtime"
	"strings"
	"unsafe"
)

// Attribute is something that is known of a request, such as its "path".
type Attribute struct {
	// Name is the attribute's, as rules have it: "method", "path", "client", "header.x-plan".
	Name string
	// Value need not be UTF-8.
	Value string
}

// Classify is the priority of a request by the rules that the file has now; Default where they leave it to the gate.
// Of several attributes with one name the first counts.
func (g *Gates) Classify(attributes ...Attribute) (Priority, error) {
	priority, _, err := g.classify(attributes, nil)
	return priority, err
}

// ClassifyWhy is Classify with a sentence about the rule that decided.
func (g *Gates) ClassifyWhy(attributes ...Attribute) (Priority, string, error) {
	return g.classify(attributes, make([]C.char, saidSize))
}

func (g *Gates) classify(attributes []Attribute, why []C.char) (Priority, string, error) {
	var text, sizes = make([]byte, 0, 256), make([]C.size_t, 0, 16)
	for _, each := range attributes {
		if strings.IndexByte(each.Name, 0) >= 0 {
			return Default, "", argument("an attribute's name must not contain NUL, got %q", each.Name)
		}
		text = append(append(append(text, each.Name...), 0), each.Value...)
		sizes = append(sizes, C.size_t(len(each.Name)+1), C.size_t(len(each.Value)))
	}
	var priority C.int32_t
	status := C.tidegate_go_classify(g.native, (*C.char)(unsafe.Pointer(unsafe.SliceData(text))),
		unsafe.SliceData(sizes), C.size_t(len(attributes)), &priority, unsafe.SliceData(why), C.size_t(len(why)))
	runtime.KeepAlive(g)
	if status == C.TIDEGATE_ERR_ARGUMENT {
		return Default, "", argument("a request has at most 4096 attributes, got %d", len(attributes))
	}
	if err := done(status); err != nil {
		return Default, "", err
	}
	said := ""
	if len(why) > 0 {
		said = C.GoString(&why[0])
	}
	return priorityOf(priority), said, nil
}
