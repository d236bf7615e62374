package sqlgate_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync"
	"testing"

	"tidegate"
	"tidegate/sqlgate"
)

var background = context.Background()

func opened(t *testing.T, limit int, database *fake) (*sql.DB, *tidegate.Gate) {
	t.Helper()
	gate, err := tidegate.New("db", limit)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(sqlgate.Wrap(database, gate))
	db.SetMaxIdleConns(limit)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
		stats, err := gate.Stats()
		if err != nil || stats.InFlight != 0 || stats.Collected != 0 {
			t.Errorf("at rest: %d in flight, %d collected, %v", stats.InFlight, stats.Collected, err)
		}
		if open := database.opened.Load() - database.closed.Load(); open != 0 {
			t.Errorf("%d connections are open", open)
		}
	})
	return db, gate
}

func equal[T comparable](t testing.TB, got, wanted T, what string) {
	t.Helper()
	if got != wanted {
		t.Errorf("%s: got %v, expected %v", what, got, wanted)
	}
}

func isShed(t testing.TB, err error, what string) {
	t.Helper()
	var shed *tidegate.Shed
	if !errors.As(err, &shed) {
		t.Errorf("%s: %v", what, err)
	}
}

func inside(t testing.TB, gate *tidegate.Gate, wanted int, what string) {
	t.Helper()
	equal(t, gate.InFlight(), wanted, what)
}

func TestWhatIsShedOpensNoConnection(t *testing.T) {
	database := &fake{}
	db, gate := opened(t, 0, database)
	_, err := db.QueryContext(background, "SELECT")
	isShed(t, err, "query")
	_, err = db.ExecContext(background, "UPDATE")
	isShed(t, err, "exec")
	_, err = db.BeginTx(background, nil)
	isShed(t, err, "begin")
	_, err = db.PrepareContext(background, "SELECT")
	isShed(t, err, "prepare")
	isShed(t, db.PingContext(background), "ping")
	isShed(t, db.QueryRowContext(background, "SELECT").Scan(new(int)), "a row")
	equal(t, database.opened.Load(), 0, "opened")
	stats, _ := gate.Stats()
	equal(t, stats.Shed[tidegate.Critical][tidegate.ReasonLimit], 6, "each asked once")
	equal(t, db.Stats().Idle, 0, "idle, with no connection behind them")
}

func TestAPermitLastsAsLongAsTheConnectionIsInUse(t *testing.T) {
	for _, plain := range []bool{false, true} {
		database := &fake{plain: plain}
		db, gate := opened(t, 1, database)

		rows, err := db.QueryContext(background, "SELECT")
		if err != nil {
			t.Fatal(err)
		}
		inside(t, gate, 1, "with rows")
		_, err = db.ExecContext(background, "UPDATE")
		isShed(t, err, "beside rows")
		for rows.Next() {
			inside(t, gate, 1, "with rows")
		}
		inside(t, gate, 0, "after the last row")

		rows, err = db.QueryContext(background, "SELECT")
		equal(t, err, nil, "another query")
		equal(t, rows.Close(), nil, "closed early")
		inside(t, gate, 0, "after closing")

		tx, err := db.BeginTx(background, nil)
		equal(t, err, nil, "begin")
		_, err = tx.ExecContext(background, "UPDATE")
		equal(t, err, nil, "in a transaction")
		inside(t, gate, 1, "in a transaction")
		equal(t, tx.Commit(), nil, "commit")
		inside(t, gate, 0, "after it")
		tx, err = db.BeginTx(background, nil)
		equal(t, err, nil, "begin")
		equal(t, tx.Rollback(), nil, "rollback")
		inside(t, gate, 0, "after it")

		conn, err := db.Conn(background)
		equal(t, err, nil, "conn")
		inside(t, gate, 0, "before it did anything")
		equal(t, conn.PingContext(background), nil, "ping")
		inside(t, gate, 1, "with a connection")
		equal(t, conn.Close(), nil, "close")
		inside(t, gate, 0, "after it")

		statement, err := db.PrepareContext(background, "SELECT")
		equal(t, err, nil, "prepare")
		inside(t, gate, 0, "with a statement")
		var n int
		equal(t, statement.QueryRowContext(background).Scan(&n), nil, "a statement's row")
		equal(t, n, 1, "it")
		rows, err = statement.QueryContext(background)
		equal(t, err, nil, "a statement's rows")
		inside(t, gate, 1, "with a statement's rows")
		_, err = statement.ExecContext(background)
		isShed(t, err, "the same statement, beside its rows")
		equal(t, rows.Close(), nil, "close")
		before, _ := gate.Stats()
		_, err = statement.ExecContext(background)
		equal(t, err, nil, "exec")
		after, _ := gate.Stats()
		equal(t, after.Admitted[tidegate.Critical], before.Admitted[tidegate.Critical]+1, "a statement passes the gate")
		equal(t, statement.Close(), nil, "close")
		inside(t, gate, 0, "at rest")
		equal(t, database.opened.Load(), 1, fmt.Sprint("one connection was enough, plain ", plain))
	}
}

func TestOutcomes(t *testing.T) {
	database := &fake{}
	db, gate := opened(t, 1, database)
	released := func(outcome tidegate.Outcome) uint64 {
		stats, err := gate.Stats()
		if err != nil {
			t.Fatal(err)
		}
		return stats.Released[outcome]
	}
	for _, each := range []struct {
		err     error
		outcome tidegate.Outcome
	}{
		{errors.New("no such table"), tidegate.Success},
		{state("23505"), tidegate.Success},
		{state("53300"), tidegate.Overload},
		{state("57014"), tidegate.Overload},
		{context.DeadlineExceeded, tidegate.Overload},
		{context.Canceled, tidegate.Ignore},
	} {
		for where, work := range map[string]func(*sql.Conn) error{
			"exec":    func(c *sql.Conn) error { _, err := c.ExecContext(background, "UPDATE"); return err },
			"query":   func(c *sql.Conn) error { _, err := c.QueryContext(background, "SELECT"); return err },
			"prepare": func(c *sql.Conn) error { _, err := c.PrepareContext(background, "SELECT"); return err },
			"commit": func(c *sql.Conn) error {
				database.fail.Store(nil)
				tx, err := c.BeginTx(background, nil)
				if err != nil {
					return err
				}
				database.failNext(each.err)
				return tx.Commit()
			},
		} {
			before := released(each.outcome)
			conn, err := db.Conn(background)
			equal(t, err, nil, where)
			equal(t, conn.PingContext(background), nil, where) // in use, and reset
			database.failNext(each.err)
			if err := work(conn); !errors.Is(err, each.err) {
				t.Errorf("%s: %v", where, err)
			}
			equal(t, conn.Close(), nil, where)
			equal(t, released(each.outcome), before+1, fmt.Sprint(each.outcome, " after ", where, ": ", each.err))
		}
	}

	// In the midst of rows.
	for wanted, over := range map[tidegate.Outcome]error{
		tidegate.Ignore: context.Canceled, tidegate.Overload: context.DeadlineExceeded, tidegate.Success: nil,
	} {
		before := released(wanted)
		rows, err := db.QueryContext(background, "SELECT")
		equal(t, err, nil, "query")
		equal(t, rows.Next(), true, "a row")
		if over != nil {
			database.failNext(over)
		}
		equal(t, rows.Next(), over == nil, "another")
		_ = rows.Close()
		equal(t, released(wanted), before+1, fmt.Sprint("released after ", over))
	}
	ctx, cancel := context.WithCancel(background)
	before := released(tidegate.Ignore)
	rows, err := db.QueryContext(ctx, "SELECT")
	equal(t, err, nil, "query")
	cancel()
	_ = rows.Close() // or database/sql did
	equal(t, released(tidegate.Ignore), before+1, "a query that was cancelled")
}

func TestABadConnectionIsReplaced(t *testing.T) {
	database := &fake{}
	db, gate := opened(t, 1, database)
	equal(t, db.PingContext(background), nil, "ping")
	database.failNext(driver.ErrBadConn) // at the reset
	equal(t, db.PingContext(background), nil, "ping")
	equal(t, database.opened.Load(), 2, "opened")
	equal(t, db.PingContext(background), nil, "ping") // on a third one: the second was not kept
	database.failNext(driver.ErrBadConn)
	_, err := db.ExecContext(background, "UPDATE")
	equal(t, err, nil, "exec, which database/sql tries again")
	equal(t, database.opened.Load(), 4, "opened")
	inside(t, gate, 0, "after it")
	stats, _ := gate.Stats()
	equal(t, stats.Released[tidegate.Ignore], 2, "what was tried again says nothing of the database")
	tx, err := db.BeginTx(background, nil)
	equal(t, err, nil, "begin")
	database.failNext(driver.ErrBadConn)
	_, err = tx.ExecContext(background, "UPDATE")
	equal(t, errors.Is(err, driver.ErrBadConn), true, "in a transaction it cannot be tried again")
	_ = tx.Rollback()
	inside(t, gate, 0, "at rest")
}

func TestARefusedConnection(t *testing.T) {
	down := errors.New("connection refused")
	database := &fake{refuse: down}
	db, gate := opened(t, 1, database)
	for range 3 {
		equal(t, db.PingContext(background), down, "ping")
		inside(t, gate, 0, "in flight")
	}
	database.refuse = nil
	equal(t, db.PingContext(background), nil, "ping")
}

func TestAPermitThatIsHeldAlreadyIsEnough(t *testing.T) {
	database := &fake{}
	db, gate := opened(t, 1, database)
	err := gate.Do(background, tidegate.Critical, func(ctx context.Context) error {
		for range 2 {
			rows, err := db.QueryContext(ctx, "SELECT")
			if err != nil {
				return err
			}
			inside(t, gate, 1, "inside")
			_, second := db.ExecContext(ctx, "UPDATE")
			isShed(t, second, "a second connection at once takes a second place")
			if err := rows.Close(); err != nil {
				return err
			}
		}
		_, other := db.ExecContext(background, "UPDATE")
		isShed(t, other, "another request")
		return nil
	})
	equal(t, err, nil, "inside")
	inside(t, gate, 0, "at rest")

	other, err := tidegate.New("other", 1)
	equal(t, err, nil, "another gate")
	err = other.Do(background, tidegate.Critical, func(ctx context.Context) error {
		rows, err := db.QueryContext(ctx, "SELECT")
		if err != nil {
			return err
		}
		inside(t, gate, 1, "inside of another gate")
		return rows.Close()
	})
	equal(t, err, nil, "inside of another gate")
}

func TestThePriorityIsTheContexts(t *testing.T) {
	db, gate := opened(t, 4, &fake{})
	_, err := db.ExecContext(tidegate.WithPriority(background, tidegate.Sheddable), "UPDATE")
	equal(t, err, nil, "exec")
	stats, _ := gate.Stats()
	equal(t, stats.Admitted[tidegate.Sheddable], 1, "admitted")
}

func TestTheDriversOwnConnection(t *testing.T) {
	db, gate := opened(t, 1, &fake{})
	conn, err := db.Conn(background)
	equal(t, err, nil, "conn")
	equal(t, conn.Raw(func(raw any) error {
		inner, err := sqlgate.Underlying(background, raw)
		if _, ok := inner.(*fakeConn); !ok {
			t.Errorf("got %T", inner)
		}
		inside(t, gate, 1, "inside")
		return err
	}), nil, "raw")
	equal(t, conn.Close(), nil, "close")
	if _, err := sqlgate.Underlying(background, &fakeConn{}); err == nil {
		t.Error("a connection without a gate")
	}
}

func TestACancelledTransactionOfAPlainDriverIsNotKept(t *testing.T) {
	for _, plain := range []bool{false, true} {
		database := &fake{plain: plain}
		db, gate := opened(t, 1, database)
		ctx, cancel := context.WithCancel(background)
		tx, err := db.BeginTx(ctx, nil)
		equal(t, err, nil, "begin")
		cancel()
		for gate.InFlight() > 0 { // database/sql rolls back on its own
			_ = tx.Rollback()
		}
		equal(t, db.PingContext(background), nil, "ping")
		equal(t, database.opened.Load() == 2, plain, "opened another one")
	}
}

func TestStorm(t *testing.T) {
	const limit = 3
	database := &fake{}
	db, gate := opened(t, limit, database)
	var working sync.WaitGroup
	var lock sync.Mutex
	shed, good := 0, 0
	for worker := range 16 {
		working.Go(func() {
			for at := range 400 {
				ctx, cancel := context.WithCancel(background)
				err := work(ctx, cancel, db, worker+at)
				cancel()
				lock.Lock()
				if errors.Is(err, tidegate.ErrShed) {
					shed++
				} else if err == nil {
					good++
				}
				lock.Unlock()
			}
		})
	}
	working.Wait()
	inside(t, gate, 0, "at rest")
	stats, _ := gate.Stats()
	if stats.HighWater > limit || database.most.Load() > limit || shed == 0 || good == 0 {
		t.Errorf("high water %d, at once %d, %d shed, %d good", stats.HighWater, database.most.Load(), shed, good)
	}
}

func work(ctx context.Context, cancel func(), db *sql.DB, kind int) error {
	switch kind % 4 {
	case 0:
		return db.QueryRowContext(ctx, "SELECT").Scan(new(int))
	case 1:
		rows, err := db.QueryContext(ctx, "SELECT")
		if err != nil {
			return err
		}
		cancel() // while database/sql is at it
		return rows.Close()
	case 2:
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		rows, err := tx.QueryContext(ctx, "SELECT")
		if err == nil {
			_ = rows.Close()
		}
		return errors.Join(err, tx.Rollback())
	default:
		_, err := db.ExecContext(ctx, "UPDATE")
		return err
	}
}
