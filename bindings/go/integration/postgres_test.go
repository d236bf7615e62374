//go:build tidegate_flags

package integration

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/stdlib"

	"tidegate"
	"tidegate/sqlgate"
)

// counted is the driver's connector, which says how many connections were opened.
type counted struct {
	driver.Connector
	opened atomic.Int64
}

func (c *counted) Connect(ctx context.Context) (driver.Conn, error) {
	c.opened.Add(1)
	return c.Connector.Connect(ctx)
}

// address is that of the server which scripts/with_postgres.sh started.
func address(t *testing.T) string {
	t.Helper()
	dsn := os.Getenv("TIDEGATE_TEST_DSN")
	if dsn == "" {
		t.Skip("no PostgreSQL: TIDEGATE_TEST_DSN is not set")
	}
	return dsn
}

func opened(t *testing.T, limit int) (*sql.DB, *tidegate.Gate, *counted) {
	t.Helper()
	connector, err := stdlib.GetDefaultDriver().(driver.DriverContext).OpenConnector(address(t))
	if err != nil {
		t.Fatal(err)
	}
	gate, err := tidegate.New("db", limit)
	if err != nil {
		t.Fatal(err)
	}
	counting := &counted{Connector: connector}
	db := sql.OpenDB(sqlgate.Wrap(counting, gate))
	db.SetMaxIdleConns(limit)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
		if gate.InFlight() != 0 {
			t.Error("in flight at rest", gate.InFlight())
		}
	})
	return db, gate, counting
}

func stats(t *testing.T, gate *tidegate.Gate) tidegate.Stats {
	t.Helper()
	read, err := gate.Stats()
	if err != nil {
		t.Fatal(err)
	}
	return read
}

func TestOverloadReachesNoDatabase(t *testing.T) {
	const limit, users = 3, 24
	db, gate, connector := opened(t, limit)
	start := make(chan struct{})
	var working sync.WaitGroup
	var good, shed atomic.Int64
	for range users {
		working.Go(func() {
			<-start
			for range 10 {
				var n int
				err := db.QueryRowContext(context.Background(), "SELECT count(*) FROM generate_series(1, 20000)").Scan(&n)
				switch {
				case err == nil && n == 20000:
					good.Add(1)
				case errors.Is(err, tidegate.ErrShed):
					shed.Add(1)
				default:
					t.Errorf("%d, %v", n, err)
				}
			}
		})
	}
	close(start)
	working.Wait()
	counters := stats(t, gate)
	if good.Load() == 0 || shed.Load() == 0 || counters.HighWater > limit {
		t.Errorf("%d good, %d shed, high water %d", good.Load(), shed.Load(), counters.HighWater)
	}
	if counters.Released[tidegate.Success] != uint64(good.Load()) {
		t.Errorf("%d good, but %v", good.Load(), counters.Released)
	}
	if connections := connector.opened.Load(); connections > limit {
		t.Errorf("%d connections for a limit of %d", connections, limit)
	}
}

func TestWhatPostgresSaysOfItself(t *testing.T) {
	db, gate, _ := opened(t, 1)
	sleep := func(ctx context.Context, query string) error {
		_, err := db.ExecContext(ctx, query)
		return err
	}
	short, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if err := sleep(short, "SELECT pg_sleep(60)"); !errors.Is(err, context.DeadlineExceeded) {
		t.Error("a deadline:", err)
	}
	if err := sleep(context.Background(), "SET statement_timeout = 10"); err != nil {
		t.Fatal(err)
	}
	if err := sleep(context.Background(), "SELECT pg_sleep(60)"); err == nil {
		t.Error("a statement's timeout")
	}
	if err := sleep(context.Background(), "SELECT 1 FROM no_such_table"); err == nil {
		t.Error("a mistake")
	}
	cancelled, end := context.WithCancel(context.Background())
	go func() {
		for gate.InFlight() == 0 {
			time.Sleep(time.Millisecond)
		}
		end()
	}()
	if err := sleep(cancelled, "SET statement_timeout = 0; SELECT pg_sleep(60)"); !errors.Is(err, context.Canceled) {
		t.Error("a cancellation:", err)
	}
	released := stats(t, gate).Released
	// Ignored is also the one that found its connection gone, after the deadline, and was tried again on another.
	if released[tidegate.Overload] != 2 || released[tidegate.Success] != 2 || released[tidegate.Ignore] != 2 {
		t.Error(released)
	}
}

func TestTransactionsStatementsAndRows(t *testing.T) {
	db, gate, connector := opened(t, 1)
	ctx := context.Background()
	conn, err := db.Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.ExecContext(ctx, "CREATE TEMP TABLE t (n int, at timestamptz, what text[])"); err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil { // the table stays with the connection, which is the only one
		t.Fatal(err)
	}
	tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelSerializable})
	if err != nil {
		t.Fatal(err)
	}
	statement, err := tx.PrepareContext(ctx, "INSERT INTO t VALUES ($1, $2, $3)")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().Truncate(time.Microsecond)
	for n := range 3 {
		if _, err := statement.ExecContext(ctx, n, now, []string{"a", "b"}); err != nil { // as only this driver takes it
			t.Fatal(err)
		}
	}
	if _, err := db.ExecContext(ctx, "SELECT 1"); !errors.Is(err, tidegate.ErrShed) {
		t.Error("beside a transaction:", err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	rows, err := db.QueryContext(ctx, "SELECT n, at FROM t ORDER BY n")
	if err != nil {
		t.Fatal(err)
	}
	types, err := rows.ColumnTypes()
	if err != nil || types[0].DatabaseTypeName() != "INT4" || types[1].DatabaseTypeName() != "TIMESTAMPTZ" {
		t.Error(types, err)
	}
	for wanted := 0; rows.Next(); wanted++ {
		var n int
		var at time.Time
		if err := rows.Scan(&n, &at); err != nil || n != wanted || !at.Equal(now) {
			t.Error(n, at, err)
		}
	}
	if err := rows.Err(); err != nil {
		t.Error(err)
	}
	if connector.opened.Load() != 1 || gate.InFlight() != 0 {
		t.Error(connector.opened.Load(), gate.InFlight())
	}
}

func TestOpenByName(t *testing.T) {
	gate, err := tidegate.New("db", 2)
	if err != nil {
		t.Fatal(err)
	}
	db, err := sqlgate.Open("pgx", address(t), gate)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Ping(); err != nil {
		t.Error(err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	if read := stats(t, gate); read.Released[tidegate.Success] != 1 {
		t.Error(read.Released)
	}
	if _, err := sqlgate.Open("no such driver", "", gate); err == nil {
		t.Error("a driver that is not there")
	}
}
