package sqlgate_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"runtime"
	"sync/atomic"
)

// fake is a database: it counts its connections, and how many are in use between their beginning and their end.
type fake struct {
	opened, closed, resets, inUse, most atomic.Int64
	plain                               bool // without what came to drivers later
	refuse                              error
	fail                                atomic.Pointer[error] // what the next query says
}

func (f *fake) Connect(context.Context) (driver.Conn, error) {
	if f.refuse != nil {
		return nil, f.refuse
	}
	f.opened.Add(1)
	if f.plain {
		return &plainConn{f}, nil
	}
	return &fakeConn{plainConn{f}}, nil
}

func (f *fake) Driver() driver.Driver { return nil }

func (f *fake) failNext(err error) { f.fail.Store(&err) }

func (f *fake) failure() error {
	if err := f.fail.Swap(nil); err != nil {
		return *err
	}
	return nil
}

// begin takes its time, in which others have theirs.
func (f *fake) begin() {
	now := f.inUse.Add(1)
	for most := f.most.Load(); now > most && !f.most.CompareAndSwap(most, now); most = f.most.Load() {
	}
	for range 20 {
		runtime.Gosched()
	}
}

type plainConn struct{ *fake }

func (c *plainConn) Prepare(string) (driver.Stmt, error) {
	if err := c.failure(); err != nil {
		return nil, err
	}
	return &fakeStmt{c.fake}, nil
}

func (c *plainConn) Begin() (driver.Tx, error) { return c, nil }

func (c *plainConn) Commit() error { return c.failure() }

func (c *plainConn) Rollback() error { return nil }

func (c *plainConn) Close() error {
	c.closed.Add(1)
	return nil
}

type fakeConn struct{ plainConn }

func (c *fakeConn) QueryContext(ctx context.Context, _ string, _ []driver.NamedValue) (driver.Rows, error) {
	if err := errors.Join(ctx.Err(), c.failure()); err != nil {
		return nil, err
	}
	c.begin()
	return &fakeRows{fake: c.fake, left: 2}, nil
}

func (c *fakeConn) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	return driver.RowsAffected(1), c.failure()
}

func (c *fakeConn) ResetSession(context.Context) error {
	c.resets.Add(1)
	return c.failure()
}

func (c *fakeConn) IsValid() bool { return true }

type fakeStmt struct{ *fake }

func (s *fakeStmt) Close() error { return nil }

func (s *fakeStmt) NumInput() int { return -1 }

func (s *fakeStmt) Exec([]driver.Value) (driver.Result, error) {
	return driver.RowsAffected(1), s.failure()
}

func (s *fakeStmt) Query([]driver.Value) (driver.Rows, error) {
	if err := s.failure(); err != nil {
		return nil, err
	}
	s.begin()
	return &fakeRows{fake: s.fake, left: 2}, nil
}

type fakeRows struct {
	*fake
	left   int
	closed bool
}

func (r *fakeRows) Columns() []string { return []string{"n"} }

func (r *fakeRows) Close() error {
	if !r.closed {
		r.closed = true
		r.inUse.Add(-1)
	}
	return nil
}

func (r *fakeRows) Next(row []driver.Value) error {
	if err := r.failure(); err != nil {
		return err
	}
	if r.left == 0 {
		return io.EOF
	}
	r.left--
	row[0] = int64(r.left)
	return nil
}

// state is an error as PostgreSQL's drivers have it.
type state string

func (s state) Error() string { return "SQLSTATE " + string(s) }

func (s state) SQLState() string { return string(s) }
