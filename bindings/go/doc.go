// Package tidegate is a load shedder. A gate stands in front of a bottleneck, usually a database, counts what is
// inside and turns the rest away at once, the least important first.
//
//	gate, err := tidegate.New("db", 20)
//
//	permit, err := gate.TryAdmit(tidegate.Sheddable, 1) // never waits
//	if err != nil {
//		return err // a *Shed: try again later
//	}
//	defer permit.Release()
//
//	err = gate.Do(ctx, tidegate.Critical, func(ctx context.Context) error { ... })
//
// It is a thin layer over libtidegate, through cgo; its words and numbers are those of every other language.
// Subpackage sqlgate puts a gate before the connections of database/sql, httpgate before an http.Handler.
//
// Everything here may be called from any goroutine at any time. Nothing waits but [Gate.Drain].
package tidegate
