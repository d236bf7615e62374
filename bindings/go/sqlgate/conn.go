package sqlgate

import (
	"context"
	"database/sql/driver"
	"errors"

	"tidegate"
	"tidegate/internal/held"
)

// conn is a connection of the pool, of which the driver's own is opened behind the gate.
//
// database/sql takes it out by ResetSession, unless it is new, and puts it back by IsValid or Close. Between these it
// is in use by one request, and holds that one's permit from the first thing that it does. No call on it overlaps
// with another: database/sql locks it.
type conn struct {
	connector *connector
	inner     driver.Conn // nil until it was opened
	stale     bool        // it was in use before, and has to be told
	discard   bool        // what is on it nobody can know

	permit  *tidegate.Permit
	place   *held.Mark // that of a permit which the request holds already
	outcome tidegate.Outcome
}

// enter passes the gate, unless this request has, and opens or refreshes the driver's connection.
func (c *conn) enter(ctx context.Context) (driver.Conn, error) {
	if err := c.admit(ctx); err != nil {
		return nil, err
	}
	if c.inner == nil {
		inner, err := c.connector.inner.Connect(ctx)
		if err != nil {
			return nil, c.note(err)
		}
		c.inner = inner
	}
	if c.stale {
		c.stale = false
		if resetter, ok := c.inner.(driver.SessionResetter); ok {
			if err := resetter.ResetSession(ctx); errors.Is(err, driver.ErrBadConn) {
				return nil, c.note(err)
			}
		}
	}
	return c.inner, nil
}

func (c *conn) admit(ctx context.Context) error {
	if c.permit != nil || c.place != nil {
		return nil
	}
	gate := c.connector.gate
	if place := held.Use(ctx, gate); place != nil {
		c.place = place
		return nil
	}
	permit, err := gate.TryAdmit(tidegate.PriorityFrom(ctx), 1)
	if err != nil {
		return err
	}
	c.permit, c.outcome = permit, tidegate.Success
	return nil
}

// leave gives the permit back.
func (c *conn) leave() {
	if c.permit != nil {
		_ = c.permit.ReleaseAs(c.outcome) // nobody else has it
		c.permit = nil
	}
	if c.place != nil {
		c.place.GiveBack()
		c.place = nil
	}
}

// note takes what an error says of the database, and returns it. What says more stays.
func (c *conn) note(err error) error {
	if err == nil || errors.Is(err, driver.ErrSkip) {
		return err
	}
	outcome := outcomeOf(c.connector.gate, err)
	if errors.Is(err, driver.ErrBadConn) {
		outcome = tidegate.Ignore // it is tried again
	}
	if outcome == tidegate.Overload || c.outcome == tidegate.Success {
		c.outcome = outcome
	}
	return err
}

// ResetSession is the beginning of another request's use. The driver is told behind the gate.
func (c *conn) ResetSession(context.Context) error {
	c.stale = c.inner != nil
	return nil
}

// IsValid is the end of a request's use. A connection that was never opened is not kept.
func (c *conn) IsValid() bool {
	c.leave()
	if c.inner == nil || c.discard {
		return false
	}
	if validator, ok := c.inner.(driver.Validator); ok {
		return validator.IsValid()
	}
	return true
}

// Close is the end of it.
func (c *conn) Close() error {
	c.leave()
	if c.inner == nil {
		return nil
	}
	return c.inner.Close()
}

// Ping passes the gate like anything else: what cannot be let in cannot be said to work.
func (c *conn) Ping(ctx context.Context) error {
	inner, err := c.enter(ctx)
	if errors.Is(err, driver.ErrBadConn) && c.inner != nil {
		// database/sql tries everything else again. This connection's statements are gone: it is not kept.
		_ = c.inner.Close()
		c.inner, c.discard = nil, true
		inner, err = c.enter(ctx)
	}
	if err != nil {
		return err
	}
	if pinger, ok := inner.(driver.Pinger); ok {
		return c.note(pinger.Ping(ctx))
	}
	return nil
}

// ExecContext does without a statement where the driver can.
func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	inner, err := c.enter(ctx)
	if err != nil {
		return nil, err
	}
	execer, ok := inner.(driver.ExecerContext)
	if !ok {
		return nil, driver.ErrSkip
	}
	result, err := execer.ExecContext(ctx, query, args)
	return result, c.note(err)
}

// QueryContext does without a statement where the driver can.
func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	inner, err := c.enter(ctx)
	if err != nil {
		return nil, err
	}
	queryer, ok := inner.(driver.QueryerContext)
	if !ok {
		return nil, driver.ErrSkip
	}
	found, err := queryer.QueryContext(ctx, query, args)
	return c.rows(ctx, found, err)
}

// Prepare is for callers without a context.
func (c *conn) Prepare(query string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), query)
}

// PrepareContext prepares a statement.
func (c *conn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	inner, err := c.enter(ctx)
	if err != nil {
		return nil, err
	}
	var prepared driver.Stmt
	if preparer, ok := inner.(driver.ConnPrepareContext); ok {
		prepared, err = preparer.PrepareContext(ctx, query)
	} else if prepared, err = inner.Prepare(query); err == nil && ctx.Err() != nil {
		_ = prepared.Close()
		err = ctx.Err()
	}
	if err != nil {
		return nil, c.note(err)
	}
	return &stmt{prepared, c}, nil
}

// CheckNamedValue is the driver's, which sees its arguments only behind the gate.
func (c *conn) CheckNamedValue(value *driver.NamedValue) error {
	if checker, ok := c.inner.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(value)
	}
	return driver.ErrSkip
}
