package sqlgate

import (
	"context"
	"database/sql/driver"
	"errors"
)

// stmt is a prepared statement. It lives as long as its connection, and passes the gate in each of its uses.
type stmt struct {
	inner driver.Stmt
	conn  *conn
}

func (s *stmt) Close() error { return s.inner.Close() }

func (s *stmt) NumInput() int { return s.inner.NumInput() }

func (s *stmt) Exec(args []driver.Value) (driver.Result, error) {
	return s.ExecContext(context.Background(), named(args))
}

func (s *stmt) Query(args []driver.Value) (driver.Rows, error) {
	return s.QueryContext(context.Background(), named(args))
}

func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	if _, err := s.conn.enter(ctx); err != nil {
		return nil, err
	}
	if execer, ok := s.inner.(driver.StmtExecContext); ok {
		result, err := execer.ExecContext(ctx, args)
		return result, s.conn.note(err)
	}
	values, err := unnamed(ctx, args)
	if err != nil {
		return nil, s.conn.note(err)
	}
	//lint:ignore SA1019 what the driver has
	result, err := s.inner.Exec(values)
	return result, s.conn.note(err)
}

func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	if _, err := s.conn.enter(ctx); err != nil {
		return nil, err
	}
	if queryer, ok := s.inner.(driver.StmtQueryContext); ok {
		found, err := queryer.QueryContext(ctx, args)
		return s.conn.rows(ctx, found, err)
	}
	values, err := unnamed(ctx, args)
	if err != nil {
		return nil, s.conn.note(err)
	}
	//lint:ignore SA1019 what the driver has
	found, err := s.inner.Query(values)
	return s.conn.rows(ctx, found, err)
}

func (s *stmt) CheckNamedValue(value *driver.NamedValue) error {
	if checker, ok := s.inner.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(value)
	}
	return s.conn.CheckNamedValue(value)
}

func (s *stmt) ColumnConverter(index int) driver.ValueConverter {
	//lint:ignore SA1019 what the driver has
	if converter, ok := s.inner.(driver.ColumnConverter); ok {
		return converter.ColumnConverter(index)
	}
	return driver.DefaultParameterConverter
}

func named(args []driver.Value) []driver.NamedValue {
	all := make([]driver.NamedValue, len(args))
	for at, value := range args {
		all[at] = driver.NamedValue{Ordinal: at + 1, Value: value}
	}
	return all
}

func unnamed(ctx context.Context, args []driver.NamedValue) ([]driver.Value, error) {
	all := make([]driver.Value, len(args))
	for at, each := range args {
		if each.Name != "" {
			return nil, errors.New("sqlgate: driver does not support the use of Named Parameters")
		}
		all[at] = each.Value
	}
	return all, ctx.Err()
}
