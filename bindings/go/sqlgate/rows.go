package sqlgate

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"reflect"
)

// rows are the driver's, of which the gate hears how they ended. What a driver does not know of its columns is what
// database/sql assumes then.
type rows struct {
	driver.Rows
	conn  *conn
	ctx   context.Context
	ended bool
}

func (c *conn) rows(ctx context.Context, found driver.Rows, err error) (driver.Rows, error) {
	if err != nil {
		return nil, c.note(err)
	}
	return &rows{Rows: found, conn: c, ctx: ctx}, nil
}

func (r *rows) Next(row []driver.Value) error {
	err := r.Rows.Next(row)
	if errors.Is(err, io.EOF) {
		r.ended = true
		return err
	}
	return r.conn.note(err)
}

// Close before the end comes from database/sql, when the context is over, or from who has seen enough.
func (r *rows) Close() error {
	if over := r.ctx.Err(); over != nil && !r.ended {
		_ = r.conn.note(over)
	}
	return r.conn.note(r.Rows.Close())
}

func (r *rows) HasNextResultSet() bool {
	more, ok := r.Rows.(driver.RowsNextResultSet)
	return ok && more.HasNextResultSet()
}

func (r *rows) NextResultSet() error {
	more, ok := r.Rows.(driver.RowsNextResultSet)
	if !ok {
		return io.EOF
	}
	r.ended = false
	err := more.NextResultSet()
	if errors.Is(err, io.EOF) {
		r.ended = true
		return err
	}
	return r.conn.note(err)
}

func (r *rows) ColumnTypeScanType(index int) reflect.Type {
	if known, ok := r.Rows.(driver.RowsColumnTypeScanType); ok {
		return known.ColumnTypeScanType(index)
	}
	return reflect.TypeFor[any]()
}

func (r *rows) ColumnTypeDatabaseTypeName(index int) string {
	if known, ok := r.Rows.(driver.RowsColumnTypeDatabaseTypeName); ok {
		return known.ColumnTypeDatabaseTypeName(index)
	}
	return ""
}

func (r *rows) ColumnTypeLength(index int) (int64, bool) {
	if known, ok := r.Rows.(driver.RowsColumnTypeLength); ok {
		return known.ColumnTypeLength(index)
	}
	return 0, false
}

func (r *rows) ColumnTypeNullable(index int) (nullable, ok bool) {
	if known, ok := r.Rows.(driver.RowsColumnTypeNullable); ok {
		return known.ColumnTypeNullable(index)
	}
	return false, false
}

func (r *rows) ColumnTypePrecisionScale(index int) (precision, scale int64, ok bool) {
	if known, ok := r.Rows.(driver.RowsColumnTypePrecisionScale); ok {
		return known.ColumnTypePrecisionScale(index)
	}
	return 0, 0, false
}
