package extract_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/server/v3/lease/leasepb"

	"github.com/etcd-medic/etcd-medic/repair/extract"
)

// smallDB has a deleted key, one with a lease of which 20 seconds remain, and one whose lease is gone.
func smallDB(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	s, done := store(t, path)
	s.Put([]byte("a"), []byte("1"), 0)         // 2
	s.Put([]byte("b"), []byte("q\"\\"), 0x77)  // 3
	s.Put([]byte("c"), []byte("\xff"), 0x99)   // 4
	s.DeleteRange([]byte("a"), nil)            // 5
	s.Put([]byte("b2"), []byte("other"), 0x77) // 6
	done()
	l, err := (&leasepb.Lease{ID: 0x77, TTL: 500, RemainingTTL: 20}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	putRow(t, path, "lease", binary.BigEndian.AppendUint64(nil, 0x77), l)
	return path
}

// TestLines compares every byte of the lines, and the counts, with what was stored.
func TestLines(t *testing.T) {
	at := func(key string, rev int, rest string) string {
		return fmt.Sprintf(`{"key":{"text":"%s"},"revision":{"main":%d,"sub":0}`+rest+"}\n", key, rev)
	}
	numbers := func(rev int) string {
		return fmt.Sprintf(`,"createRevision":%d,"modRevision":%d,"version":1`, rev, rev)
	}
	const known, gone = `,"lease":"77","leaseTTL":20`, `,"lease":"99"`
	state := func(known, gone string) string {
		return at("b", 3, numbers(3)+known+`,"value":{"text":"q\"\\"}`) +
			at("b2", 6, numbers(6)+known+`,"value":{"text":"other"}`) +
			at("c", 4, numbers(4)+gone+`,"value":{"base64":"/w=="}`)
	}
	first := at("a", 2, numbers(2)+`,"value":{"text":"1"}`)
	path := smallDB(t)
	for name, c := range map[string]struct {
		o            extract.Options
		lines, count string
	}{
		"state": {extract.Options{}, state(known, gone), "3 (0 deleted) of 3, 0 tombstones, 13 bytes, {grant 3 2 1}"},
		"detach": {extract.Options{Leases: extract.LeaseDetach}, state("", ""),
			"3 (0 deleted) of 3, 0 tombstones, 13 bytes, {detach 3 2 1}"},
		"skip": {extract.Options{Leases: extract.LeaseSkip}, "",
			"0 (0 deleted) of 0, 0 tombstones, 0 bytes, {skip 3 2 1}"},
		"deleted": {extract.Options{Deleted: true},
			strings.Replace(first, "}\n", `,"deleted":true,"deletedRevision":{"main":5,"sub":0}}`+"\n", 1) +
				state(known, gone), "4 (1 deleted) of 4, 0 tombstones, 15 bytes, {grant 3 2 1}"},
		"history": {extract.Options{History: true},
			first + at("b", 3, numbers(3)+known+`,"value":{"text":"q\"\\"}`) +
				at("c", 4, numbers(4)+gone+`,"value":{"base64":"/w=="}`) + at("a", 5, `,"tombstone":true`) +
				at("b2", 6, numbers(6)+known+`,"value":{"text":"other"}`),
			"0 (0 deleted) of 5, 1 tombstones, 16 bytes, {grant 3 2 1}"},
		"history without leased keys": {extract.Options{History: true, Leases: extract.LeaseSkip},
			first + at("a", 5, `,"tombstone":true`), "0 (0 deleted) of 2, 1 tombstones, 3 bytes, {skip 3 2 1}"},
		"history of an object": {extract.Options{History: true, Select: extract.Selection{Kind: "Pod"}}, "",
			"0 (0 deleted) of 0, 0 tombstones, 0 bytes, {grant 0 0 0}"},
		"history of a prefix": {extract.Options{History: true,
			Select: extract.Selection{Prefixes: [][]byte{[]byte("b2")}}},
			at("b2", 6, numbers(6)+known+`,"value":{"text":"other"}`),
			"0 (0 deleted) of 1, 0 tombstones, 7 bytes, {grant 1 1 0}"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			c.o.Format, c.o.Stream = extract.JSONL, &out
			res, err := extract.Run(t.Context(), path, c.o)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.lines, out.String()); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
			if have := fmt.Sprintf("%d (%d deleted) of %d, %d tombstones, %d bytes, %v", res.Keys, res.DeletedKeys,
				res.Records, res.Tombstones, res.Bytes, res.Leases); have != c.count {
				t.Errorf("%s, want %s", have, c.count)
			}
			if res.Short() || res.Revision != 6 {
				t.Errorf("%+v", res)
			}
		})
	}
}

// TestStreamFails: an extract whose reader went away is an error in every format that goes to a stream.
func TestStreamFails(t *testing.T) {
	path := smallDB(t)
	for _, f := range []extract.Format{extract.JSONL, extract.Put, extract.Txn} {
		r, w := io.Pipe()
		_ = r.Close() // never fails
		if _, err := extract.Run(t.Context(), path, extract.Options{Format: f, Stream: w}); err == nil {
			t.Errorf("%s: no error", f)
		}
	}
}

// TestFormats: every format in the list is known, and no other.
func TestFormats(t *testing.T) {
	for _, f := range extract.Formats() {
		if !extract.Format(f).Known() {
			t.Errorf("%s is not known", f)
		}
	}
	if extract.Format("csv").Known() || extract.Format("").Known() {
		t.Error("an unknown format is known")
	}
}
