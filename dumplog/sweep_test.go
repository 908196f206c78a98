package dumplog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// The sweeps cut and flip a small log of each etcd line at every place. The logs are the heads of healthy incidents,
// cut at a record border, so that they are what real servers of that line wrote.
var sweepLines = []string{"a-auth-revision-replay", "m-healthy-3.5", "m-healthy-3.6", "m-healthy-3.7"}

const sweepRecords = 14

// seenEntry is an entry for comparison; seenLog what one reading of a log showed.
type seenEntry struct {
	off         int64
	term, index uint64
	data        string
}

type seenLog struct {
	entries []seenEntry
	damage  []*dumplog.DamageError
}

func readSeen(dir string) (*seenLog, error) {
	l, err := dumplog.Open(dir)
	if err != nil {
		return nil, err
	}
	s := &seenLog{}
	last := int64(-1)
	for r, err := range l.Records(context.Background()) {
		if d, ok := errors.AsType[*dumplog.DamageError](err); ok {
			s.damage = append(s.damage, d)
			if d.Server == "" || d.Err == nil {
				return nil, fmt.Errorf("damage without words: %v", d)
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		if r.Offset <= last {
			return nil, fmt.Errorf("offset 0x%x follows 0x%x", r.Offset, last)
		}
		last = r.Offset
	}
	sum, err := l.Scan(context.Background())
	if err != nil {
		return nil, err
	}
	for e, err := range l.Entries(context.Background(), sum) {
		if err != nil {
			continue
		}
		if _, err := e.Decode(); err != nil {
			return nil, err
		}
		s.entries = append(s.entries, seenEntry{e.Offset, e.Term, e.Index, fmt.Sprint(e.Type, string(e.Data))})
	}
	return s, nil
}

// small returns the first records of a line's log as a WAL folder with a zero tail, and where its data ends.
func small(t *testing.T, incident string) (seg string, data []byte, end int64) {
	t.Helper()
	node := nodesWith(t, incident)[0]
	evidencetest.Unchanged(t, node)
	l, err := dumplog.Open(filepath.Join(node, "member", "wal"))
	must(t, err)
	n, name := 0, ""
	for r, err := range l.Records(context.Background()) {
		must(t, err)
		if n++; n > sweepRecords {
			break
		}
		end, name = r.Offset+r.Len, r.Segment
	}
	data, err = os.ReadFile(filepath.Join(l.Dir(), name))
	must(t, err)
	data = append(bytes.Clone(data[:end]), make([]byte, 2048)...)
	seg = filepath.Join(t.TempDir(), name)
	must(t, os.WriteFile(seg, data, 0o600))
	return seg, data, end
}

// TestEveryPrefix cuts the log at every byte: the records before the cut come back as they were, nothing else does, and
// a cut inside a record is a torn tail.
func TestEveryPrefix(t *testing.T) {
	for _, line := range sweepLines {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			seg, data, end := small(t, line)
			dir := filepath.Dir(seg)
			whole, err := readSeen(dir)
			must(t, err)
			borders := recordEnds(t, dir)
			for n := int64(0); n <= end; n++ {
				must(t, os.WriteFile(seg, data[:n], 0o600))
				got, err := readSeen(dir)
				must(t, err)
				var want []seenEntry
				for _, e := range whole.entries {
					if borders[e.off] <= n {
						want = append(want, e)
					}
				}
				if !slices.Equal(got.entries, want) {
					t.Fatalf("cut at %d: %d entries, want %d", n, len(got.entries), len(want))
				}
				atBorder := n == 0
				for _, b := range borders {
					atBorder = atBorder || b == n
				}
				if n > 0 && (len(got.damage) == 0) != atBorder {
					t.Fatalf("cut at %d, record border %v: damage %v", n, atBorder, got.damage)
				}
				if !atBorder && got.damage[len(got.damage)-1].Kind != dumplog.DamageTornTail {
					t.Fatalf("cut at %d: %v", n, got.damage)
				}
			}
		})
	}
}

func recordEnds(t *testing.T, dir string) map[int64]int64 {
	t.Helper()
	ends := map[int64]int64{}
	l, err := dumplog.Open(dir)
	must(t, err)
	for r, err := range l.Records(context.Background()) {
		must(t, err)
		ends[r.Offset] = r.Offset + r.Len
	}
	return ends
}

// TestEveryBitFlip flips every bit of the log, one at a time: damage is reported at the record that holds the bit, the
// entries before it are identical, and no entry comes back that was not there. At most the record that was hit is lost.
func TestEveryBitFlip(t *testing.T) {
	for _, line := range sweepLines {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			seg, data, end := small(t, line)
			dir := filepath.Dir(seg)
			whole, err := readSeen(dir)
			must(t, err)
			f, err := os.OpenFile(seg, os.O_WRONLY, 0)
			must(t, err)
			defer f.Close()
			for bit := int64(0); bit < end*8; bit++ {
				at := bit / 8
				b := []byte{data[at] ^ 1<<(bit%8)}
				_, err := f.WriteAt(b, at)
				must(t, err)
				checkFlip(t, dir, whole, at, int(bit%8))
				_, err = f.WriteAt(data[at:at+1], at)
				must(t, err)
			}
		})
	}
}

func checkFlip(t *testing.T, dir string, whole *seenLog, at int64, bit int) {
	t.Helper()
	got, err := readSeen(dir)
	must(t, err)
	if len(got.damage) == 0 {
		t.Fatalf("byte 0x%x bit %d: not noticed", at, bit)
	}
	if d := got.damage[0]; d.Offset > at {
		t.Fatalf("byte 0x%x bit %d: %v lies behind", at, bit, d)
	}
	known := map[seenEntry]bool{}
	for _, e := range whole.entries {
		known[e] = true
	}
	for _, e := range got.entries {
		if !known[e] {
			t.Fatalf("byte 0x%x bit %d: invented entry %d/%d", at, bit, e.term, e.index)
		}
	}
	if len(got.entries) < len(whole.entries)-1 {
		t.Fatalf("byte 0x%x bit %d: %d of %d entries, damage %v", at, bit, len(got.entries), len(whole.entries),
			got.damage)
	}
	for i, e := range whole.entries {
		if e.off < got.damage[0].Offset && got.entries[i] != e {
			t.Fatalf("byte 0x%x bit %d: entry %d before the damage differs", at, bit, e.index)
		}
	}
}
