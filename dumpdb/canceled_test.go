package dumpdb

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/etcd-medic/etcd-medic/internal/ctxtest"
)

// TestEndsAnywhere: wherever the caller gives up, a reading ends with the error of its context, or gives all of it.
func TestEndsAnywhere(t *testing.T) {
	const lease = `set lease "\x00\x00\x00\x00\x00\x00\x00\x10" "\x08\x10\x10\x3c"` + "\n"
	db := made(t, "many 200 2.0 /k 300\nput 202.0 /k-0 v\ndel 203.0 /k-1\n"+lease+"compact 100")
	for name, read := range map[string]func(ctx context.Context, db *DB) (string, error){
		"check": func(ctx context.Context, db *DB) (string, error) {
			r, err := db.Check(ctx)
			if err != nil {
				return "", err
			}
			return fmt.Sprint(*r), damagesOrNil(r.Damage)
		},
		"stats": func(ctx context.Context, db *DB) (string, error) {
			st, err := db.KVStats(ctx)
			if err != nil {
				return "", err
			}
			return fmt.Sprint(*st), nil
		},
		"hash": func(ctx context.Context, db *DB) (string, error) {
			h, err := db.HashKV(ctx, 150)
			return fmt.Sprint(h), err
		},
		"content": func(ctx context.Context, db *DB) (string, error) { return db.ContentHash(ctx, 120, 180) },
		"usage": func(ctx context.Context, db *DB) (string, error) {
			u, err := db.Usage(ctx, Query{}, 1)
			if err != nil {
				return "", err
			}
			return fmt.Sprint(u.Total, u.Prefixes, len(u.Largest)), nil
		},
		"live": func(ctx context.Context, db *DB) (string, error) {
			n := 0
			for _, err := range db.Query(ctx, Query{Live: true}) {
				if err != nil {
					return "", err
				}
				n++
			}
			return fmt.Sprint(n), nil
		},
		"salvage": func(ctx context.Context, db *DB) (string, error) {
			n := map[Origin]int{}
			for r, err := range db.SalvageRevisions(ctx) {
				if err != nil {
					return "", err
				}
				n[r.Origin]++
			}
			return fmt.Sprint(n), nil
		},
		"pages": func(ctx context.Context, db *DB) (string, error) {
			n := map[PageState]int{}
			for p, err := range db.Pages(ctx) {
				if err != nil {
					return "", err
				}
				n[p.State]++
			}
			return fmt.Sprint(n), nil
		},
		"until": func(ctx context.Context, db *DB) (string, error) {
			in, err := db.Inspect(ctx)
			if err != nil {
				return "", err
			}
			if in.Content == nil {
				return "", in.HashErr
			}
			return in.Content.HashUntil(ctx, db, 160)
		},
	} {
		ctx := ctxtest.EndingAfter(1 << 40)
		want, err := read(ctx, db)
		fatal(t, err)
		asked := 1<<40 - ctx.Left()
		for n := int64(0); n < asked+2; n++ {
			got, err := read(ctxtest.EndingAfter(n), db)
			if err != nil && !errors.Is(err, context.Canceled) || err == nil && got != want {
				t.Errorf("%s, after %d of %d: %.80q, %v; want %.80q", name, n, asked, got, err, want)
			}
		}
	}
}

// TestFileEndsAnywhere: wherever the context of the file ends, it does not open, or a listing of its rows and the
// newest revision end with the error of the context; or all of it was read.
func TestFileEndsAnywhere(t *testing.T) {
	sc := &script{t: t}
	sc.create(&datadriven.TestData{Input: "many 200 2.0 /k 300\nput 202.0 /k-0 v\n" +
		`set lease "\x00\x00\x00\x00\x00\x00\x00\x10" "\x08\x10\x10\x3c"` + "\n"})
	read := func(ctx context.Context) (string, error) {
		db, err := OpenContext(ctx, sc.path)
		if err != nil {
			return "", err
		}
		defer db.Close()
		rows := 0
		for _, bucket := range []string{"key", "lease"} {
			for _, err := range db.Rows(bucket) {
				if err != nil {
					return "", err
				}
				rows++
			}
		}
		newest, err := db.CurrentRev()
		return fmt.Sprint(rows, newest), err
	}
	ctx := ctxtest.EndingAfter(1 << 40)
	want, err := read(ctx)
	fatal(t, err)
	asked := 1<<40 - ctx.Left()
	for n := range asked + 2 {
		got, err := read(ctxtest.EndingAfter(n))
		if err != nil && !errors.Is(err, context.Canceled) || err == nil && got != want {
			t.Errorf("after %d of %d: %q, %v; want %q", n, asked, got, err, want)
		}
	}
}
