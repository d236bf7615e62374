package sqlgate

import (
	"context"
	"database/sql/driver"
	"errors"
)

// Begin is for callers without a context.
func (c *conn) Begin() (driver.Tx, error) { return c.BeginTx(context.Background(), driver.TxOptions{}) }

// BeginTx begins a transaction, as database/sql would without a gate.
func (c *conn) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	inner, err := c.enter(ctx)
	if err != nil {
		return nil, err
	}
	var begun driver.Tx
	if beginner, ok := inner.(driver.ConnBeginTx); ok {
		begun, err = beginner.BeginTx(ctx, options)
	} else {
		begun, err = plainBegin(ctx, inner, options)
	}
	if err != nil {
		return nil, c.note(err)
	}
	return &tx{begun, c, ctx}, nil
}

func plainBegin(ctx context.Context, inner driver.Conn, options driver.TxOptions) (driver.Tx, error) {
	if options.Isolation != 0 {
		return nil, errors.New("sqlgate: driver does not support non-default isolation level")
	}
	if options.ReadOnly {
		return nil, errors.New("sqlgate: driver does not support read-only transactions")
	}
	//lint:ignore SA1019 what the driver has
	begun, err := inner.Begin()
	if err == nil && ctx.Err() != nil {
		_ = begun.Rollback()
		return nil, ctx.Err()
	}
	return begun, err
}

type tx struct {
	inner driver.Tx
	conn  *conn
	ctx   context.Context
}

func (t *tx) Commit() error { return t.conn.note(t.inner.Commit()) }

// Rollback also comes from database/sql, when the context is over. It would not keep the connection of a driver that
// cannot be told to forget, and keeps this one, which can.
func (t *tx) Rollback() error {
	if over := t.ctx.Err(); over != nil {
		_ = t.conn.note(over)
		_, resets := t.conn.inner.(driver.SessionResetter)
		_, validates := t.conn.inner.(driver.Validator)
		t.conn.discard = !resets || !validates
	}
	return t.conn.note(t.inner.Rollback())
}
