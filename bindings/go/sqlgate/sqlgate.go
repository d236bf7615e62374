// Package sqlgate puts a gate before the connections of database/sql:
//
//	db, err := sqlgate.Open("pgx", dsn, gate)
//
// Whoever takes a connection out of the pool passes the gate first, at its first query, statement, transaction or
// ping, and holds the permit until the connection goes back: for as long as the rows, the transaction or the
// [sql.Conn] live. A connection to the database is opened only behind the gate, so what is shed costs the database
// nothing. The error is a *tidegate.Shed. The priority is the context's: see tidegate.WithPriority.
//
// What runs inside Gate.Do, or behind httpgate, of the same gate takes no second place in it, one connection at a time.
//
// Leave SetMaxOpenConns at 0: the gate is the limit, and a pool that is full makes callers wait before they come to it.
package sqlgate

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"

	"tidegate"
)

// Open is [sql.Open] behind a gate. As many idle connections are kept as the gate's limit is now.
func Open(driverName, dsn string, gate *tidegate.Gate) (*sql.DB, error) {
	found, err := sql.Open(driverName, dsn)
	if err != nil {
		return nil, err
	}
	underlying := found.Driver()
	if err := found.Close(); err != nil {
		return nil, err
	}
	var inner driver.Connector = dsnConnector{dsn, underlying}
	if modern, ok := underlying.(driver.DriverContext); ok {
		if inner, err = modern.OpenConnector(dsn); err != nil {
			return nil, err
		}
	}
	db := sql.OpenDB(Wrap(inner, gate))
	db.SetMaxIdleConns(gate.Limit())
	return db, nil
}

// Wrap puts a gate before the connections of a connector, for [sql.OpenDB]. Call SetMaxIdleConns with the gate's limit:
// the default keeps two.
func Wrap(inner driver.Connector, gate *tidegate.Gate) driver.Connector {
	return &connector{inner, gate}
}

// Underlying is the driver's own connection, for [sql.Conn.Raw]. It passes the gate.
func Underlying(ctx context.Context, driverConn any) (driver.Conn, error) {
	c, ok := driverConn.(*conn)
	if !ok {
		return nil, fmt.Errorf("sqlgate: not a connection behind a gate: %T", driverConn)
	}
	return c.enter(ctx)
}

type connector struct {
	inner driver.Connector
	gate  *tidegate.Gate
}

// Connect opens nothing yet: that is behind the gate, where the context of a request is known.
func (c *connector) Connect(context.Context) (driver.Conn, error) { return &conn{connector: c}, nil }

func (c *connector) Driver() driver.Driver { return c.inner.Driver() }

func (c *connector) Close() error {
	if closer, ok := c.inner.(io.Closer); ok {
		return closer.Close()
	}
	return nil
}

// dsnConnector is for drivers that have no connector of their own.
type dsnConnector struct {
	dsn    string
	driver driver.Driver
}

func (c dsnConnector) Connect(context.Context) (driver.Conn, error) { return c.driver.Open(c.dsn) }

func (c dsnConnector) Driver() driver.Driver { return c.driver }

// outcomeOf adds to the gate's own what databases say of themselves, by their SQLSTATE.
func outcomeOf(gate *tidegate.Gate, err error) tidegate.Outcome {
	outcome := gate.OutcomeOf(err)
	var state interface{ SQLState() string }
	if outcome != tidegate.Success || !errors.As(err, &state) {
		return outcome
	}
	switch code := state.SQLState(); {
	case len(code) == 5 && code[:2] == "53", // insufficient resources, among them too many connections
		code == "57014": // a statement's timeout
		return tidegate.Overload
	}
	return outcome
}
