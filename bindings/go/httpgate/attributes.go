package httpgate

import (
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"

	"tidegate"
)

const mostHeaders = 4000 // of the 4096 attributes that a request may have

// Attributes is what rules see of a request: method, path, client (its address), and header.NAME for each header, in
// lower case, several values joined by commas.
func Attributes(request *http.Request) []tidegate.Attribute {
	all := make([]tidegate.Attribute, 0, 4+len(request.Header))
	all = append(all,
		tidegate.Attribute{Name: "method", Value: request.Method},
		tidegate.Attribute{Name: "path", Value: request.URL.Path})
	if host, _, err := net.SplitHostPort(request.RemoteAddr); err == nil {
		all = append(all, tidegate.Attribute{Name: "client", Value: host})
	}
	if request.Host != "" { // which net/http keeps apart
		all = append(all, tidegate.Attribute{Name: "header.host", Value: request.Host})
	}
	// Sorted, so that a request with too many always lacks the same.
	for _, name := range slices.Sorted(maps.Keys(request.Header)) {
		if len(all) == mostHeaders {
			break
		}
		value := strings.Join(request.Header[name], ",")
		all = append(all, tidegate.Attribute{Name: "header." + strings.ToLower(name), Value: value})
	}
	return all
}
