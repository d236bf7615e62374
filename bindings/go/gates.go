package tidegate

// #include "native.h"
import "C"

import (
	"runtime"
	"strings"
	"sync"
	"unsafe"
)

// Gates are the gates of a file, by name, and its classifier. See docs/configuration.md.
type Gates struct {
	native *C.tidegate_gates
	lock   sync.Mutex
	known  map[*C.tidegate_gate]*Gate // so that a gate is the same at every call
}

// What a call says fits: a file's problems, and a reload's changes, one a line.
const saidSize = 1 << 16

// Open reads a file of gates, in TOML. The error has everything that is wrong with it, one problem a line.
func Open(path string) (*Gates, error) {
	name, err := terminated("a path", path)
	if err != nil {
		return nil, err
	}
	return opened(func(out **C.tidegate_gates, why *C.char) C.tidegate_status {
		return C.tidegate_open(&name[0], out, why, saidSize)
	})
}

// OpenText is Open from a text; messages call it by the name.
func OpenText(text, file string) (*Gates, error) {
	name, err := terminated("a file's name", file)
	if err != nil {
		return nil, err
	}
	data, size := pointerTo(text)
	return opened(func(out **C.tidegate_gates, why *C.char) C.tidegate_status {
		return C.tidegate_open_text(data, size, &name[0], out, why, saidSize)
	})
}

func opened(open func(out **C.tidegate_gates, why *C.char) C.tidegate_status) (*Gates, error) {
	if err := library(); err != nil {
		return nil, err
	}
	var native *C.tidegate_gates
	said := make([]C.char, saidSize)
	if status := open(&native, &said[0]); status != C.TIDEGATE_ADMITTED {
		return nil, failed(status, C.GoString(&said[0]))
	}
	gates := &Gates{native: native, known: map[*C.tidegate_gate]*Gate{}}
	runtime.AddCleanup(gates, func(native *C.tidegate_gates) { C.tidegate_gates_free(native) }, native)
	return gates, nil
}

// terminated is a text as C ends it. One with a NUL inside would be cut there, so it is refused.
func terminated(what, text string) ([]C.char, error) {
	if at := strings.IndexByte(text, 0); at >= 0 {
		return nil, argument("%s must not contain NUL, got %q", what, text)
	}
	ended := make([]C.char, len(text)+1)
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&ended[0])), len(text)), text)
	return ended, nil
}

// Gate is the gate of a name: the same at every call, also where a reload has the file without it, which closes it.
func (g *Gates) Gate(name string) (*Gate, error) {
	var found *C.tidegate_gate
	text, size := pointerTo(name)
	status := C.tidegate_find(g.native, text, size, &found)
	runtime.KeepAlive(name)
	runtime.KeepAlive(g)
	if status == C.TIDEGATE_ERR_ARGUMENT {
		return nil, argument("the file has no gate %q", name)
	}
	if err := done(status); err != nil {
		return nil, err
	}
	return g.gate(found), nil
}

// All are the gates that the file has now, in its order.
func (g *Gates) All() []*Gate {
	var all []*Gate
	for position := C.size_t(0); ; position++ {
		var found *C.tidegate_gate
		if C.tidegate_gate_at(g.native, position, &found) != C.TIDEGATE_ADMITTED {
			runtime.KeepAlive(g)
			return all
		}
		all = append(all, g.gate(found))
	}
}

func (g *Gates) gate(native *C.tidegate_gate) *Gate {
	g.lock.Lock()
	defer g.lock.Unlock()
	gate := g.known[native]
	if gate == nil {
		gate = &Gate{native: native, owner: g, name: C.GoString(C.tidegate_gate_name(native)), outcomeOf: OutcomeOf}
		gate.readFallback()
		g.known[native] = gate
	}
	return gate
}

// readFallback keeps the default priority, which only a reload changes.
func (g *Gate) readFallback() {
	native := C.tidegate_go_stats()
	if C.tidegate_get_stats(g.native, &native) == C.TIDEGATE_ADMITTED {
		g.fallback.Store(int32(priorityOf(native.default_priority)))
	}
}

// Reload reads the file again and makes its gates what it says now. It returns what was changed, one change each. Where
// the file cannot be used nothing is changed, and the error has the reasons.
func (g *Gates) Reload() ([]string, error) {
	return g.reloaded(func(said *C.char) C.tidegate_status { return C.tidegate_reload(g.native, said, saidSize) })
}

// ReloadText is Reload from a text.
func (g *Gates) ReloadText(text string) ([]string, error) {
	data, size := pointerTo(text)
	return g.reloaded(func(said *C.char) C.tidegate_status {
		return C.tidegate_reload_text(g.native, data, size, said, saidSize)
	})
}

func (g *Gates) reloaded(reload func(said *C.char) C.tidegate_status) ([]string, error) {
	said := make([]C.char, saidSize)
	status := reload(&said[0])
	runtime.KeepAlive(g)
	text := C.GoString(&said[0])
	if status != C.TIDEGATE_ADMITTED {
		return nil, failed(status, text)
	}
	g.lock.Lock()
	defer g.lock.Unlock()
	for _, gate := range g.known {
		gate.readFallback()
	}
	return strings.FieldsFunc(text, func(r rune) bool { return r == '\n' }), nil
}

// Explain is what the gates and rules do, in words, as `tidegate check FILE` prints it.
func (g *Gates) Explain() (string, error) {
	for size := C.size_t(saidSize); ; {
		text := make([]C.char, size)
		var length C.size_t
		status := C.tidegate_explain(g.native, &text[0], size, &length)
		runtime.KeepAlive(g)
		if err := done(status); err != nil {
			return "", err
		}
		if length < size {
			return C.GoString(&text[0]), nil
		}
		size = length + 1 // a reload may have made it longer again
	}
}
