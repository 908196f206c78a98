package chain_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/compare/backup/chain"
	"github.com/etcd-medic/etcd-medic/compare/backup/chain/chaintest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/internal/ctxtest"
)

// TestOverlapDiffers: a delta that repeats what the full snapshot holds must repeat it exactly.
func TestOverlapDiffers(t *testing.T) {
	old, now := databases(t)
	base, top := revision(t, old), revision(t, now)
	for name, change := range map[string]func(*clientv3.Event){
		"value":   func(e *clientv3.Event) { e.Kv.Value = append([]byte("x"), e.Kv.Value[1:]...) },
		"key":     func(e *clientv3.Event) { e.Kv.Key = append([]byte("x"), e.Kv.Key[1:]...) },
		"version": func(e *clientv3.Event) { e.Kv.Version++ },
		"delete":  func(e *clientv3.Event) { e.Type = 1 },
		"last":    func(e *clientv3.Event) { e.Kv.Key = append([]byte("x"), e.Kv.Key[1:]...) },
	} {
		t.Run(name, func(t *testing.T) {
			c := &chaintest.Chain{TB: t, Dir: t.TempDir()}
			c.Full(old, base-3)
			events := chaintest.Events(t, now, base-2, top)
			i := slices.IndexFunc(events, func(e *clientv3.Event) bool { return e.Type == 0 && len(e.Kv.Value) > 0 })
			if name == "last" {
				i = slices.IndexFunc(events, func(e *clientv3.Event) bool { return e.Kv.ModRevision == base })
			}
			if events[i].Kv.ModRevision > base {
				t.Fatalf("the first put is at revision %d, the snapshot ends at %d", events[i].Kv.ModRevision, base)
			}
			change(events[i])
			c.Delta(events)
			r := verify(t, c.Dir)
			if !slices.ContainsFunc(r.Faults, func(f chain.Fault) bool {
				return f.Kind == chain.Mismatch && strings.Contains(f.Text, "have different changes at revision")
			}) || r.Revision != base {
				t.Errorf("serves up to %d of %d: %+v", r.Revision, base, r.Faults)
			}
		})
	}
}

// TestImpossibleEvents: an event that no server writes, or that does not fit the events before it, ends the chain.
func TestImpossibleEvents(t *testing.T) {
	old, now := databases(t)
	base, top := revision(t, old), revision(t, now)
	put := func(key string, rev, create, version int64) *clientv3.Event {
		e := *chaintest.Events(t, now, top, top)[0]
		kv := *e.Kv
		kv.Key, kv.Value, kv.ModRevision, kv.CreateRevision, kv.Version = []byte(key), []byte("v"), rev, create, version
		e.Kv, e.Type = &kv, 0
		return &e
	}
	del := func(key string, rev int64) *clientv3.Event {
		e := put(key, rev, 0, 0)
		e.Type = 1
		return e
	}
	a, b, c := base+1, base+2, base+3
	for _, tc := range []struct {
		name   string
		events []*clientv3.Event
		text   string
		serves int64
	}{
		{"sound", []*clientv3.Event{put("/new", a, a, 1), put("/new", b, a, 2), del("/new", c)}, "", c},
		{"created again", []*clientv3.Event{put("/new", a, a, 1), del("/new", b), put("/new", c, c, 1)}, "", c},
		{"version 0", []*clientv3.Event{put("/new", a, a, 0)}, "is impossible", base},
		{"created elsewhere with version 1", []*clientv3.Event{put("/new", a, 2, 1)}, "is impossible", base},
		{"created later", []*clientv3.Event{put("/new", a, b, 2)}, "is impossible", base},
		{"version left out", []*clientv3.Event{put("/new", a, a, 1), put("/new", b, a, 3)},
			"the events before it leave create revision", base},
		{"created twice", []*clientv3.Event{put("/new", a, a, 1), put("/new", b, b, 1)}, "needs no such key before it", base},
		{"deleted twice", []*clientv3.Event{put("/new", a, a, 1), del("/new", b), del("/new", c)},
			"needs the key before it, the events before it leave no such key", base},
		{"deleted, but never there", []*clientv3.Event{put("/new", a, a, 1), del("/none", b)},
			"needs the key, but the snapshot has no such key", a},
		{"second version of a key that was never there", []*clientv3.Event{put("/none", a, 5, 2)},
			"needs create revision 5, version 1, but the snapshot has no such key", base},
	} {
		t.Run(tc.name, func(t *testing.T) {
			store := &chaintest.Chain{TB: t, Dir: t.TempDir()}
			store.Full(old, base)
			store.Delta(tc.events)
			r := verify(t, store.Dir)
			text := ""
			for _, f := range r.Faults {
				text += f.Text + "\n"
				if f.First == 0 || f.Key == nil {
					t.Errorf("no place: %+v", f)
				}
			}
			if !strings.Contains(text, tc.text) || (text == "") != (tc.text == "") || r.Revision != tc.serves {
				t.Errorf("serves up to %d, want %d: %s", r.Revision, tc.serves, text)
			}
			if int(r.Events) != len(tc.events) || r.Serves() != (tc.text == "") || !r.Deltas[0].Sound {
				t.Errorf("%+v", r)
			}
		})
	}
}

// TestNamesThatDoNotFit: a name that promises other revisions than the file holds is a fault of the chain.
func TestNamesThatDoNotFit(t *testing.T) {
	old, now := databases(t)
	base, top := revision(t, old), revision(t, now)
	c := &chaintest.Chain{TB: t, Dir: t.TempDir()}
	c.Full(old, base+5)
	c.DeltaAs(base+1, top+1, chaintest.Events(t, now, base+1, top))
	c.DeltaAs(top+2, top+3, nil)
	r := verify(t, c.Dir)
	var texts []string
	for _, f := range r.Faults {
		texts = append(texts, f.Text)
	}
	all := strings.Join(texts, "\n")
	for _, want := range []string{"its name says", "has revisions 0 to 0, its name says"} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in %s", want, all)
		}
	}
	if len(r.Deltas) != 2 || r.Deltas[1].Events != 0 || r.FullRevision != base || r.LastNamed != top+3 {
		t.Errorf("%+v", r)
	}
}

// TestManyFaults: faults are listed up to a bound and counted beyond it.
func TestManyFaults(t *testing.T) {
	old, _ := databases(t)
	base := revision(t, old)
	c := &chaintest.Chain{TB: t, Dir: t.TempDir()}
	c.Full(old, base)
	for i := range int64(130) {
		c.DeltaAs(base+1+2*i, base+1+2*i, nil)
	}
	if r := verify(t, c.Dir); len(r.Faults) != 100 || r.More != 159 || len(r.Deltas) != 130 {
		t.Errorf("%d faults, %d more, %d deltas", len(r.Faults), r.More, len(r.Deltas))
	}
}

// chainOf reads the names of files into one chain.
func chainOf(t *testing.T, files ...string) *chain.Chain {
	t.Helper()
	var all []chain.Snapshot
	for _, f := range files {
		s, ok := chain.ParseName(f)
		if !ok {
			t.Fatal(f)
		}
		all = append(all, s)
	}
	chains, _ := chain.Group(all)
	return &chains[0]
}

// TestEventsEnd: the events of a chain end with an error at what is missing, damaged or unreadable, and without one
// where the reader stops.
func TestEventsEnd(t *testing.T) {
	old, _ := databases(t)
	base := revision(t, old)
	for name, c := range map[string]struct {
		spoil func(t *testing.T, f []string)
		text  string
	}{
		"sound":      {func(*testing.T, []string) {}, ""},
		"missing":    {func(t *testing.T, f []string) { remove(t, f[1]) }, "no such file"},
		"damaged":    {func(t *testing.T, f []string) { cut(t, f[2], 2) }, "Incr-"},
		"wrong sum":  {func(t *testing.T, f []string) { b := read(t, f[2]); b[len(b)-1] ^= 1; write(t, f[2], b) }, "sha256"},
		"not packed": {func(t *testing.T, f []string) { must(t, os.Rename(f[1], f[1]+".gz")); f[1] += ".gz" }, "gzip"},
	} {
		t.Run(name, func(t *testing.T) {
			_, files := store(t, "", base, base+20, base+25)
			c.spoil(t, files)
			last, ended := base, error(nil)
			for e, err := range chainOf(t, files...).Events(t.Context(), base) {
				if ended = err; err == nil {
					last = e.ModRevision
				}
			}
			if c.text == "" && (ended != nil || last != base+25) || c.text != "" && (ended == nil ||
				!strings.Contains(ended.Error(), c.text)) {
				t.Errorf("at revision %d: %v, want %q", last, ended, c.text)
			}
		})
	}
	_, files := store(t, "", base, base+20, base+25)
	gap := *chainOf(t, files...)
	gap.Deltas = gap.Deltas[1:]
	for _, err := range gap.Events(t.Context(), base) {
		if err == nil || !strings.Contains(err.Error(), "follows") {
			t.Errorf("after a gap: %v", err)
		}
	}
	ctx, end := context.WithCancel(t.Context())
	defer end()
	n := 0
	for _, err := range chainOf(t, files...).Events(ctx, base) {
		if n++; n == 3 && !errors.Is(err, context.Canceled) || n > 3 {
			t.Errorf("event %d after the end: %v", n, err)
		}
		if n == 2 {
			end()
		}
	}
	db, err := dumpdb.Open(old)
	must(t, err)
	defer func() { must(t, db.Close()) }()
	if r, err := chainOf(t, files...).Verify(ctx, db); r != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("an ended run: %+v, %v", r, err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestContentOfDelta: what a delta must not hold is an error that says it.
func TestContentOfDelta(t *testing.T) {
	const kv = `"kv":{"key":"YQ==","mod_revision":3}`
	for body, want := range map[string]string{
		`[]`: "", `[{"etcdEvent":{` + kv + `}}]`: "put", `[{"etcdEvent":{"type":"DELETE",` + kv + `}}]`: "delete",
		`[{"etcdEvent":{"type":1,` + kv + `}}]`: "delete", `[{"etcdEvent":{"type":"PUT",` + kv + `}}]`: "put",
		`[{"etcdEvent":{"type":2,` + kv + `}}]`: `event type "2" is not known`,
		`{"etcdEvent":{}}`:                      "it starts with {, not with an array of events",
		`[{}]`:                                  "an event has no key", `[{"etcdEvent":{"kv":{"mod_revision":3}}}]`: "no key or no revision",
		`[{"etcdEvent":{"kv":{"key":"YQ=="}}}]`: "no key or no revision", `[] x`: "bytes between the events and their sha256",
		`[{"etcdEvent":{` + kv + `}}`: "it ends in the middle of the events", ``: "it ends in the middle of the events",
	} {
		sum := sha256.Sum256([]byte(body))
		got := ""
		for e, err := range chain.Events(bytes.NewReader(append([]byte(body), sum[:]...))) {
			switch {
			case err != nil:
				got = err.Error()
			case e.Delete:
				got = "delete"
			default:
				got = "put"
			}
		}
		if !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
	empty := sha256.Sum256([]byte("[]"))
	var last error
	for _, err := range chain.Events(iotest.TimeoutReader(strings.NewReader("[]" + string(empty[:])))) {
		last = err
	}
	if !errors.Is(last, iotest.ErrTimeout) {
		t.Errorf("an error after the sum: %v", last)
	}
	broken := errors.New("broken disk")
	for _, err := range chain.Events(iotest.ErrReader(broken)) {
		if !errors.Is(err, broken) {
			t.Errorf("%v, want %v", err, broken)
		}
	}
}

// TestNewestOfChain: a chain is as young as its newest file.
func TestNewestOfChain(t *testing.T) {
	c := chainOf(t, "Full-00000000-00000005-1700000005", "Incr-00000006-00000007-1700000009",
		"Incr-00000008-00000009-1700000007")
	if at := c.Newest().Unix(); at != 1_700_000_009 || c.Last() != 9 {
		t.Errorf("%d, last %d", at, c.Last())
	}
	if c.Deltas = nil; c.Newest().Unix() != 1_700_000_005 || c.Last() != 5 {
		t.Errorf("of the full snapshot: %v", c.Newest())
	}
	if _, err := chain.Decompress(strings.NewReader("x"), ".xz"); err == nil {
		t.Error(".xz is decompressed")
	}
	none := chain.Snapshot{Path: filepath.Join(t.TempDir(), "none")}
	if _, err := none.Open(); err == nil {
		t.Error("a file that is not there opens")
	}
}

// TestLongFull: a delta is compared with a full snapshot of many records to its end.
func TestLongFull(t *testing.T) {
	s := clustertest.Synth{Members: 1, Entries: 4200, Keys: 10, Value: 16}
	full := filepath.Join(t.TempDir(), "full.db")
	s.WriteDB(t, full)
	base := revision(t, full)
	_, now := databases(t)
	c := &chaintest.Chain{TB: t, Dir: t.TempDir()}
	c.Full(full, base)
	e := chaintest.Events(t, now, 2, 2)[0]
	e.Type, e.Kv.Key, e.Kv.ModRevision, e.Kv.CreateRevision, e.Kv.Version = 0, []byte("/none"), base+1, 5, 2
	c.Delta([]*clientv3.Event{e})
	if r := verify(t, c.Dir); len(r.Faults) != 1 || !strings.Contains(r.Faults[0].Text, "the snapshot has no such key") {
		t.Errorf("%+v", r)
	}
}

// TestDamagedFull: at and below its compaction a full snapshot may lack changes, and what cannot be read in it proves
// nothing; a full snapshot without a revision cannot be a base.
func TestDamagedFull(t *testing.T) {
	old, now := databases(t)
	base, top := revision(t, old), revision(t, now)
	events := chaintest.Events(t, now, base-5, top)
	at := binary.BigEndian.AppendUint64(nil, uint64(base-3))
	row := binary.BigEndian.AppendUint64(append(slices.Clone(at), '_'), 0)
	another := func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte("key"))
		return b.Put(append(slices.Clone(row[:len(row)-1]), 9), slices.Clone(b.Get(row)))
	}
	for name, c := range map[string]struct {
		edit func(tx *bbolt.Tx) error
		more *clientv3.Event // the first event of a key
		text string
	}{
		"another change at a revision": {edit: another, text: "have different changes at revision"},
		"another change at the compaction": {edit: func(tx *bbolt.Tx) error {
			return errors.Join(another(tx), tx.Bucket([]byte("meta")).Put([]byte("scheduledCompactRev"), row))
		}},
		"a record cannot be read": {edit: func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte("key")).Put(row, []byte{0xff})
		}, more: deletion("/none", top+1)},
		"a key is missing": {more: deletion("/none", top+1), text: "needs the key, but the snapshot has no such key"},
		"no revision": {edit: func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte("key")).Put([]byte("\xff\xff"), nil)
		}, text: "its revision cannot be read"},
	} {
		full := filepath.Join(t.TempDir(), "full.db")
		write(t, full, read(t, old))
		if c.edit != nil {
			db, err := bbolt.Open(full, 0o600, nil)
			must(t, err)
			must(t, errors.Join(db.Update(c.edit), db.Close()))
		}
		s := &chaintest.Chain{TB: t, Dir: t.TempDir()}
		s.Full(full, base-6)
		if c.more == nil {
			s.Delta(events)
		} else {
			s.Delta(append(slices.Clone(events), c.more))
		}
		r := verify(t, s.Dir)
		text := ""
		for _, f := range r.Faults {
			text += f.Text + "\n"
		}
		if !strings.Contains(text, c.text) || (text == "") != (c.text == "") {
			t.Errorf("%s: %q, want %q", name, text, c.text)
		}
	}
}

func deletion(key string, rev int64) *clientv3.Event {
	return &clientv3.Event{Type: mvccpb.DELETE, Kv: &mvccpb.KeyValue{Key: []byte(key), ModRevision: rev}}
}

// TestVerifyEndsAnywhere: wherever the caller gives up, there is no report.
func TestVerifyEndsAnywhere(t *testing.T) {
	old, now := databases(t)
	_, files := store(t, "", revision(t, old)-9, revision(t, old)+5, revision(t, now))
	db, err := dumpdb.Open(files[0])
	must(t, err)
	defer func() { must(t, db.Close()) }()
	ctx := ctxtest.EndingAfter(1 << 40)
	whole, err := chainOf(t, files...).Verify(ctx, db)
	must(t, err)
	asked := 1<<40 - ctx.Left()
	for n := range asked {
		r, err := chainOf(t, files...).Verify(ctxtest.EndingAfter(n), db)
		if r != nil || !errors.Is(err, context.Canceled) {
			t.Errorf("after %d of %d: %+v, %v", n, asked, r, err)
		}
	}
	if whole.Events == 0 || asked < whole.Events {
		t.Errorf("asked %d times in %d events", asked, whole.Events)
	}
}

// TestEventsStop: a reader may stop at any event.
func TestEventsStop(t *testing.T) {
	old, _ := databases(t)
	base := revision(t, old)
	_, files := store(t, "", base, base+20, base+25)
	for stop := range int64(25) {
		n := int64(0)
		for e, err := range chainOf(t, files...).Events(t.Context(), base) {
			must(t, err)
			if n = e.ModRevision - base; n > stop {
				break
			}
		}
		if n != stop+1 {
			t.Errorf("stopped at event %d, not %d", n, stop+1)
		}
	}
}

// TestUnreadableDelta: a file that cannot be read is not called damaged.
func TestUnreadableDelta(t *testing.T) {
	old, _ := databases(t)
	base := revision(t, old)
	_, files := store(t, "", base, base+20, base+25)
	db, err := dumpdb.Open(files[0])
	must(t, err)
	defer func() { must(t, db.Close()) }()
	remove(t, files[2])
	r, err := chainOf(t, files...).Verify(t.Context(), db)
	if err != nil || len(r.Faults) != 1 || r.Faults[0].Kind != chain.Unreadable ||
		!strings.Contains(r.Faults[0].Text, "cannot be read") || r.Revision != base+20 || r.Deltas[1].Sound {
		t.Errorf("%v, %+v", err, r)
	}
}

// TestSumIsMissing: what ends before 32 bytes follow the events has no sha256.
func TestSumIsMissing(t *testing.T) {
	for n, want := range map[int]string{0: "middle of the events", 31: "middle of the events",
		32: "sha256 does not match", 33: "1 bytes between"} {
		var last error
		for _, err := range chain.Events(bytes.NewReader(append([]byte("[]"), make([]byte, n)...))) {
			last = err
		}
		if last == nil || !strings.Contains(last.Error(), want) {
			t.Errorf("%d bytes after the events: %v", n, last)
		}
	}
}
