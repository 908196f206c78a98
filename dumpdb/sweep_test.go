package dumpdb

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
)

// lines are one small db of every etcd line, and one backup.
var lines = []string{"a-auth-revision-replay/node1", "k-lagging-node/node3", "h-misconfigured-member-add/node3",
	"l-compaction-skew/node2",
	"m-healthy-3.6/node1", "m-healthy-3.7/node2", "o-backup-good/backup"}

// lineBytes is the used part of each file of lines: the empty tail that bbolt grows in advance says nothing.
func lineBytes(t testing.TB) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for _, s := range sources(t) {
		if !slices.Contains(lines, s.name()) {
			continue
		}
		b, err := os.ReadFile(s.path)
		if err != nil {
			t.Fatal(err)
		}
		if end := int(open(t, s.path).Meta().HighWater) * 4096; end < len(b) && len(b)%512 == 0 {
			b = b[:end]
		}
		out[s.name()] = b
	}
	if len(out) != len(lines) {
		t.Fatalf("%d of %d files found", len(out), len(lines))
	}
	return out
}

// listing is what a full reading of a file gives.
type listing struct {
	rows    int
	damaged bool
}

// readAll reads a file in every way there is. It must not panic, whatever the bytes are.
func readAll(b []byte) (listing, error) {
	ctx := context.Background()
	db, err := NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return listing{}, err
	}
	in, err := db.Inspect(ctx)
	if err != nil {
		return listing{}, err
	}
	l := listing{damaged: len(in.Pages.Damage) > 0}
	buckets, damage := db.Buckets()
	l.damaged = l.damaged || len(damage) > 0
	for _, bk := range buckets {
		for _, err := range db.Rows(bk.Name) {
			if err != nil {
				l.damaged = true
			} else {
				l.rows++
			}
		}
	}
	db.Auth()
	db.Leases()
	db.Alarms()
	db.Members()
	db.RemovedMembers()
	db.Cluster()
	db.Trailer()
	return l, nil
}

// readDeep adds the readers that also look at what is not in use.
func readDeep(b []byte) {
	ctx := context.Background()
	db, err := NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return
	}
	for range db.SalvageRevisions(ctx) {
	}
	for p := range db.Pages(ctx) {
		db.Page(p.Page)
	}
	for range db.Query(ctx, Query{Live: true}) {
	}
	db.Usage(ctx, Query{}, 2)
	if prev, err := db.PreviousView(); err == nil {
		prev.Inspect(ctx)
	}
}

// One flipped bit: never a panic, and never fewer rows without damage being named.
func TestSweepBitFlip(t *testing.T) {
	for name, b := range lineBytes(t) {
		t.Run(name, func(t *testing.T) {
			whole, err := readAll(b)
			if err != nil || whole.damaged {
				t.Fatalf("the sound file: %+v %v", whole, err)
			}
			rnd := rand.New(rand.NewPCG(uint64(len(b)), 7))
			step := max(1, len(b)/700)
			for at := 0; at < len(b); at++ {
				// Headers and element tables carry the structure; of the rest a sample is enough.
				if at%4096 > 80 && at%step != 0 || at%4096 <= 80 && len(b) > 100<<10 && at/4096%24 != 0 {
					continue
				}
				bit := byte(1) << rnd.IntN(8)
				b[at] ^= bit
				l, err := readAll(b)
				if err == nil && l.rows < whole.rows && !l.damaged {
					t.Errorf("bit 0x%02x at 0x%x: %d of %d rows and no damage", bit, at, l.rows, whole.rows)
				}
				if at%11 == 0 {
					readDeep(b)
				}
				b[at] ^= bit
			}
		})
	}
}

// A file cut anywhere: never a panic, and never a short listing that passes for whole.
func TestSweepTruncate(t *testing.T) {
	for name, b := range lineBytes(t) {
		t.Run(name, func(t *testing.T) {
			whole, err := readAll(b)
			if err != nil {
				t.Fatal(err)
			}
			step := max(509, len(b)/400) // no divisor of a page
			for n := 0; n < len(b)-trailerSize; n += step {
				l, err := readAll(b[:n])
				if err == nil && !l.damaged {
					t.Errorf("cut at 0x%x: %d of %d rows and no damage", n, l.rows, whole.rows)
				}
				if n%5 == 0 {
					readDeep(b[:n])
				}
			}
		})
	}
}

// bboltCheckEnv makes the test program a child that runs bbolt's own check over the files of a directory: bbolt kills
// the process on some of them.
const bboltCheckEnv = "DUMPDB_TEST_BBOLT_CHECK"

// bboltCheckChild checks files from the first number given up to before the second; it prints each number before and
// its result after.
func bboltCheckChild(arg string) {
	f := strings.Split(arg, "|")
	dir := f[0]
	start, _ := strconv.Atoi(f[1])
	end, _ := strconv.Atoi(f[2])
	for n := start; n < end; n++ {
		path := filepath.Join(dir, strconv.Itoa(n))
		if _, err := os.Stat(path); err != nil {
			return
		}
		fmt.Printf("%d ", n)
		fmt.Println(bboltSays(path))
	}
}

func bboltSays(path string) string {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true})
	if err != nil {
		return "bad"
	}
	defer db.Close()
	says := "sound"
	err = db.View(func(tx *bbolt.Tx) error {
		for range tx.Check() {
			says = "bad"
		}
		return nil
	})
	if err != nil {
		return "bad"
	}
	return says
}

// bboltVerdicts runs the child until every file has a verdict. bbolt dies in goroutines of its own, which may outlive
// the file they belong to, so a file at which the child dies is asked about once more, alone; if that child dies too,
// it is bad.
func bboltVerdicts(t *testing.T, dir string, n int) []string {
	t.Helper()
	var out []string
	for len(out) < n {
		out = append(out, bboltChild(dir, len(out), n)...)
		if len(out) == n {
			break
		}
		if alone := bboltChild(dir, len(out), len(out)+1); len(alone) == 1 {
			out = append(out, alone[0])
		} else {
			out = append(out, "bad")
		}
	}
	return out
}

// bboltChild returns the verdicts that a child gives on files from..to before it ends or dies.
func bboltChild(dir string, from, to int) (out []string) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s|%d|%d", bboltCheckEnv, dir, from, to))
	b, _ := cmd.Output() // its death is what we look for
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) == 2 && strings.HasSuffix(line, "\n") {
			out = append(out, f[1])
		}
	}
	return out
}

// bbolt's own check never finds what we miss.
func TestOracleBboltCheckOnDamage(t *testing.T) {
	b := lineBytes(t)["k-lagging-node/node3"]
	dir := t.TempDir()
	rnd := rand.New(rand.NewPCG(3, 4))
	const n = 160
	var ours []bool
	var what []string
	for i := range n {
		c := bytes.Clone(b)
		at := rnd.IntN(len(c)/4096)*4096 + rnd.IntN(96) // header and first elements of some page
		c[at] ^= 1 << rnd.IntN(8)
		l, err := readAll(c)
		ours = append(ours, err != nil || l.damaged)
		what = append(what, fmt.Sprintf("byte 0x%x", at))
		fatal(t, os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), c, 0o600))
	}
	bad := 0
	for i, says := range bboltVerdicts(t, dir, n) {
		if says == "bad" {
			bad++
			if !ours[i] {
				t.Errorf("%s flipped: bbolt finds damage, we do not", what[i])
			}
		}
	}
	if bad < n/8 {
		t.Errorf("bbolt calls only %d of %d files bad; the sweep proves little", bad, n)
	}
}
