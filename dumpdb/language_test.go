package dumpdb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"go.etcd.io/bbolt"
)

// The golden files are scripts. `create` writes a real bbolt file from its input lines, damage verbs change its bytes,
// asking verbs read it with this package. One verb is one entry of the tables below.
//
//	create [page-size=N] [freelist]      input lines, `commit` ends a transaction:
//	    put REV KEY VALUE [create= version= mod= lease=]   a record; what is not given follows from the records before
//	    del REV KEY                                        a tombstone
//	    many N REV KEY SIZE                                N puts of KEY-0…, values of SIZE bytes
//	    set BUCKET KEY VALUE                               any row; text may be a Go string in quotes
//	    drop BUCKET KEY · bucket NAME
//	    compact SCHEDULED [FINISHED]
//	flip page= at= [bit=] · zero page= [pages=] · cut at= · hex page= at= hex= · drop-meta n= · child page= index= to= · grow by=
//	check · metas · buckets · rows bucket= · revisions · stats · hashkv [rev=] · salvage · pages · page id= · previous · query …
func TestGolden(t *testing.T) {
	datadriven.Walk(t, "testdata/golden", func(t *testing.T, path string) {
		s := &script{t: t}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.t = t
			if d.Cmd == "create" {
				return s.create(d)
			}
			if fn, ok := damageVerbs[d.Cmd]; ok {
				return s.harm(d, fn)
			}
			fn, ok := askVerbs[d.Cmd]
			if !ok {
				d.Fatalf(t, "unknown verb %s", d.Cmd)
			}
			return s.ask(d, fn)
		})
	})
}

// script is the state of one golden file.
type script struct {
	t       *testing.T
	path    string
	version map[string]int64
	born    map[string]int64
}

func (s *script) create(d *datadriven.TestData) string {
	s.version, s.born = map[string]int64{}, map[string]int64{}
	s.path = filepath.Join(s.t.TempDir(), "db")
	opts := &bbolt.Options{NoFreelistSync: !d.HasArg("freelist"), NoSync: true, PageSize: 4096}
	d.MaybeScanArgs(s.t, "page-size", &opts.PageSize)
	db, err := bbolt.Open(s.path, 0o600, opts)
	fatal(s.t, err)
	defer db.Close()
	for part := range strings.SplitSeq("\n"+d.Input, "\ncommit") {
		err := db.Update(func(tx *bbolt.Tx) error {
			for line := range strings.SplitSeq(part, "\n") {
				if err := s.line(tx, words(line)); err != nil {
					return fmt.Errorf("%s: %w", line, err)
				}
			}
			return nil
		})
		fatal(s.t, err)
	}
	return ""
}

// words cuts a line at spaces; a word in quotes is a Go string.
func words(line string) []string {
	var out []string
	for line = strings.TrimSpace(line); line != ""; line = strings.TrimSpace(line) {
		if q, err := strconv.QuotedPrefix(line); err == nil {
			s, _ := strconv.Unquote(q)
			out, line = append(out, s), line[len(q):]
			continue
		}
		w, rest, _ := strings.Cut(line, " ")
		out, line = append(out, w), rest
	}
	return out
}

func (s *script) line(tx *bbolt.Tx, w []string) error {
	if len(w) == 0 || strings.HasPrefix(w[0], "#") {
		return nil
	}
	switch w[0] {
	case "put":
		return s.put(tx, w[1], w[2], w[3], w[4:])
	case "del":
		rev, err := ParseRev(w[1])
		delete(s.version, w[2])
		return errors.Join(err, set(tx, "key", string(rev.Bytes())+"t", string(encodeKV(KeyValue{Key: []byte(w[2])}))))
	case "many":
		return s.many(tx, w)
	case "set":
		return set(tx, w[1], w[2], w[3])
	case "drop":
		return tx.Bucket([]byte(w[1])).Delete([]byte(w[2]))
	case "bucket":
		_, err := tx.CreateBucketIfNotExists([]byte(w[1]))
		return err
	case "compact":
		var errs []error
		for i, name := range []string{"scheduledCompactRev", "finishedCompactRev"}[:len(w)-1] {
			rev, err := ParseRev(w[i+1])
			errs = append(errs, err, set(tx, "meta", name, string(rev.Bytes())))
		}
		return errors.Join(errs...)
	}
	return fmt.Errorf("unknown line %q", w[0])
}

func set(tx *bbolt.Tx, bucket, k, v string) error {
	b, err := tx.CreateBucketIfNotExists([]byte(bucket))
	if err != nil {
		return err
	}
	return b.Put([]byte(k), []byte(v))
}

func (s *script) put(tx *bbolt.Tx, at, key, value string, opts []string) error {
	rev, err := ParseRev(at)
	if s.version[key]++; s.version[key] == 1 {
		s.born[key] = rev.Main
	}
	kv := KeyValue{Key: []byte(key), CreateRevision: s.born[key], ModRevision: rev.Main, Version: s.version[key],
		Value: []byte(value)}
	for _, o := range opts {
		name, v, _ := strings.Cut(o, "=")
		n, nerr := strconv.ParseInt(v, 0, 64)
		err = errors.Join(err, nerr)
		switch name {
		case "create":
			kv.CreateRevision = n
		case "version":
			kv.Version = n
		case "mod":
			kv.ModRevision = n
		case "lease":
			kv.Lease = n
		}
	}
	return errors.Join(err, set(tx, "key", string(rev.Bytes()), string(encodeKV(kv))))
}

func (s *script) many(tx *bbolt.Tx, w []string) error {
	n, err1 := strconv.Atoi(w[1])
	rev, err2 := ParseRev(w[2])
	size, err3 := strconv.Atoi(w[4])
	err := errors.Join(err1, err2, err3)
	for i := range n {
		at := Rev{Main: rev.Main + int64(i)}
		err = errors.Join(err, s.put(tx, at.String(), fmt.Sprintf("%s-%d", w[3], i), strings.Repeat("x", size), nil))
	}
	return err
}

// harm changes the bytes of the file.
func (s *script) harm(d *datadriven.TestData, fn func(*script, *datadriven.TestData, []byte) []byte) string {
	b, err := os.ReadFile(s.path)
	fatal(s.t, err)
	fatal(s.t, os.WriteFile(s.path, fn(s, d, b), 0o600))
	return ""
}

// ask opens the file and prints what fn finds.
func (s *script) ask(d *datadriven.TestData, fn func(*script, *datadriven.TestData, *DB, *strings.Builder)) string {
	db, err := Open(s.path)
	if err != nil {
		return err.Error() + "\n"
	}
	defer db.Close()
	if d.HasArg("previous") {
		if db, err = db.PreviousView(); err != nil {
			return err.Error() + "\n"
		}
	}
	var out strings.Builder
	fn(s, d, db, &out)
	return out.String()
}

func arg(s *script, d *datadriven.TestData, name string, def int64) int64 {
	v := strconv.FormatInt(def, 10)
	d.MaybeScanArgs(s.t, name, &v)
	n, err := strconv.ParseInt(v, 0, 64)
	fatal(s.t, err)
	return n
}

func verbs() []string {
	var out []string
	for v := range askVerbs {
		out = append(out, v)
	}
	for v := range damageVerbs {
		out = append(out, v)
	}
	sort.Strings(out)
	return out
}

// Every verb of the language is used by some golden file.
func TestGoldenVerbsAreUsed(t *testing.T) {
	files, err := filepath.Glob("testdata/golden/*")
	fatal(t, err)
	var all string
	for _, f := range files {
		b, err := os.ReadFile(f)
		fatal(t, err)
		all += "\n" + string(b)
	}
	for _, v := range verbs() {
		if !strings.Contains(all, "\n"+v+"\n") && !strings.Contains(all, "\n"+v+" ") {
			t.Errorf("no golden file uses %s", v)
		}
	}
}

var bg = context.Background()
