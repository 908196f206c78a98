package dumpdb

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// made is a database of lines as in the golden files.
func made(t *testing.T, lines string) *DB {
	t.Helper()
	s := &script{t: t}
	s.create(&datadriven.TestData{Input: lines})
	return open(t, s.path)
}

// TestChains: what one record says of another one of its key. At or below the compact revision records may be missing
// without a trace; above it only damage or a gap excuses a step that is not the next one.
func TestChains(t *testing.T) {
	for name, c := range map[string]struct {
		lines string
		// bad are the violations without their page.
		bad []string
		// superseded and strays are a number and the first of them.
		superseded, strays string
	}{
		"sound": {lines: "put 2.0 k v\nput 3.0 k v\ndel 4.0 k\nput 5.0 k v"},
		"superseded by a put in a transaction": {lines: "put 2.0 x v\nput 2.1 k v\nput 3.0 k v\ncompact 4",
			superseded: "1 2.1"},
		"superseded at the compact revision": {lines: "put 2.0 k v\nput 4.0 k v\ncompact 4", superseded: "1 2.0"},
		"superseded above it":                {lines: "put 2.0 k v\nput 5.0 k v\ncompact 4"},
		"superseded twice":                   {lines: "put 2.0 k v\nput 3.0 k v\nput 4.0 k v\ncompact 4", superseded: "2 2.0"},
		"superseded by a tombstone":          {lines: "put 2.0 x v\nput 2.1 k v\ndel 3.0 k\ncompact 4", superseded: "1 3.0"},
		"superseded by the tombstone at it":  {lines: "put 2.0 k v\ndel 4.0 k\ncompact 4", superseded: "1 4.0"},
		"deleted above it":                   {lines: "put 2.0 k v\ndel 5.0 k\ncompact 4"},
		"strays":                             {lines: "del 2.0 k\ndel 2.1 l\nput 5.0 x v\ncompact 4", strays: "2 2.0"},
		"a tombstone at it":                  {lines: "del 4.0 k\nput 5.0 x v\ncompact 4"},
		"a tombstone above it": {lines: "put 2.0 x v\ndel 5.0 k\ncompact 4",
			bad: []string{"5.0 tombstone-without-life k: a live key, no record of the key before"}},
		"a tombstone after a gap": {lines: "put 2.0 x v\ndel 4.0 k",
			bad: []string{"4.0 contiguous-main k: 3.0, 4.0"}},
		"a tombstone of a key twice": {lines: "put 2.0 k v\ndel 3.0 k\ndel 4.0 k",
			bad: []string{"4.0 tombstone-without-life k: a live key, no record of the key before"}},
		"another version above it": {lines: "put 2.0 x v\nput 2.1 k v\nput 4.0 k v version=3\ncompact 3",
			bad: []string{"4.0 version-chain k: version 2 after 2.1, version 3"}},
		"another create revision above it": {lines: "put 2.0 x v\nput 2.1 k v\nput 4.0 k v create=1\ncompact 3",
			bad: []string{"4.0 create-revision k: create revision 2 as in 2.1, 1"}},
		"a later version below it": {lines: "put 2.0 k v\nput 3.0 k v version=7\ncompact 3", superseded: "1 2.0"},
		"the same version below it": {lines: "put 2.0 k v create=1 version=5\nput 3.0 k v create=1 version=5\ncompact 3",
			bad: []string{"3.0 version-chain k: a version above 5, version 5"}, superseded: "1 2.0"},
		"created again below it": {lines: "put 3.0 k v create=1 version=5\nput 6.0 k v create=5 version=2\ncompact 6",
			superseded: "1 3.0"},
		"a version after a gap": {lines: "put 2.0 k v\nput 4.0 k v version=5",
			bad: []string{"4.0 contiguous-main k: 3.0, 4.0"}},
		"the same version after a gap": {lines: "put 2.0 k v create=1 version=5\nput 4.0 k v create=1 version=5",
			bad: []string{"2.0 version-chain k: version 1, since the key has no earlier record, version 5",
				"4.0 contiguous-main k: 3.0, 4.0", "4.0 version-chain k: a version above 5, version 5"}},
		"both after a gap": {lines: "put 2.0 x v\nput 4.0 k v\nput 5.0 k v version=3",
			bad: []string{"4.0 contiguous-main k: 3.0, 4.0", "5.0 version-chain k: version 2 after 4.0, version 3"}},
		"no first version": {lines: "put 2.0 k v create=1 version=2",
			bad: []string{"2.0 version-chain k: version 1, since the key has no earlier record, version 2"}},
		"no first version after a gap": {lines: "put 2.0 x v\nput 4.0 k v create=3 version=2",
			bad: []string{"4.0 contiguous-main k: 3.0, 4.0"}},
		"no first version at the compact revision": {lines: "put 4.0 k v create=3 version=2\ncompact 4"},
		"no first version above it": {lines: "put 5.0 k v create=3 version=2\ncompact 4",
			bad: []string{"5.0 version-chain k: version 1, since the key has no earlier record, version 2"}},
		"version 0": {lines: "put 2.0 k v create=1 version=0", bad: []string{
			"2.0 version-chain k: a version of 1 or more, version 0",
			"2.0 version-chain k: version 1, since the key has no earlier record, version 0"}},
		"created later":       {lines: "put 2.0 k v create=3", bad: []string{"2.0 create-revision k: from 1 to 2, 3"}},
		"created never":       {lines: "put 2.0 k v create=0", bad: []string{"2.0 create-revision k: from 1 to 2, 0"}},
		"first one after gap": {lines: "put 3.0 k v", bad: []string{"3.0 contiguous-main k: 2.0, 3.0"}},
		"a gap at the compact revision": {lines: "put 2.0 k v\nput 6.0 l v\ncompact 4",
			bad: []string{"6.0 contiguous-main l: 5.0, 6.0"}},
		"no gap after the compact revision": {lines: "put 2.0 k v\nput 5.0 l v\nput 5.1 m v\nput 6.0 n v\ncompact 4"},
		"a transaction without its first":   {lines: "put 2.1 k v", bad: []string{"2.1 contiguous-sub k: 2.0, 2.1"}},
		"an unknown field": {lines: `set key "\x00\x00\x00\x00\x00\x00\x00\x02_\x00\x00\x00\x00\x00\x00\x00\x00" ` +
			`"\x0a\x01k\x10\x02\x18\x02\x20\x01\x6a\x01v"`,
			bad: []string{"2.0 unknown-field k: fields 1 to 6 of mvccpb.KeyValue, another field"}},
		"a marker of restore --bump-revision": {lines: "put 2.0 k v\ncompact 9\n" +
			`set key "\x00\x00\x00\x00\x00\x00\x00\x09_\x00\x00\x00\x00\x00\x00\x00\x00" ""`},
		"a marker below it": {lines: "put 2.0 k v\nput 10.0 k v version=2 create=2\ncompact 9\n" +
			`set key "\x00\x00\x00\x00\x00\x00\x00\x08_\x00\x00\x00\x00\x00\x00\x00\x00" ""`},
		"no marker above it": {lines: "put 2.0 k v\ncompact 2\n" + `set key "\x00\x00\x00\x00\x00\x00\x00\x03_\x00\x00\x00\x00\x00\x00\x00\x00" ""`,
			bad: []string{"3.0 undecodable : mvccpb.KeyValue, an empty value"}},
		"no marker within a transaction": {lines: "put 2.0 k v\ncompact 3\n" + `set key "\x00\x00\x00\x00\x00\x00\x00\x03_\x00\x00\x00\x00\x00\x00\x00\x01" ""`,
			bad: []string{"3.1 undecodable : mvccpb.KeyValue, an empty value"}},
		"no marker without a compaction": {lines: "put 2.0 k v\n" + `set key "\x00\x00\x00\x00\x00\x00\x00\x03_\x00\x00\x00\x00\x00\x00\x00\x00" ""`,
			bad: []string{"3.0 undecodable : mvccpb.KeyValue, an empty value"}},
		"a compacted transaction's rest": {lines: "put 4.1 k v\nput 4.3 l v\nput 5.0 m v\ncompact 4"},
	} {
		st, err := made(t, c.lines).KVStats(t.Context())
		fatal(t, err)
		var bad []string
		for _, v := range st.Violations {
			bad = append(bad, fmt.Sprintf("%s %s %s: %s, %s", v.Rev, v.Rule, v.Key, v.Expected, v.Observed))
		}
		if !slices.Equal(bad, c.bad) || st.Impossible() != (len(bad) > 0) {
			t.Errorf("%s: %q, want %q", name, bad, c.bad)
		}
		superseded, strays := counted(st.Superseded, st.FirstSuperseded), counted(st.Strays, st.FirstStray)
		if superseded != c.superseded || strays != c.strays {
			t.Errorf("%s: superseded %q, want %q; strays %q, want %q", name, superseded, c.superseded, strays, c.strays)
		}
	}
}

// TestUnknownFields: a field that no release writes is found in users and roles. Their parts come from clients, which
// may be newer.
func TestUnknownFields(t *testing.T) {
	a, err := made(t, `set authUsers a "\x0a\x01a\x12\x01h\x22\x02\x08\x01"
set authUsers b "\x0a\x01b\x12\x01h\x2a\x00"
set authUsers c "\x0a\x01c\x12\x01h\x22\x02\x18\x01"
set authRoles a "\x0a\x01a\x12\x07\x08\x02\x12\x01k\x1a\x00"
set authRoles b "\x0a\x01b\x32\x07\x08\x02\x12\x01k\x1a\x00"
set authRoles c "\x0a\x01c\x12\x05\x48\x02\x12\x01k"`).Auth()
	fatal(t, err)
	var got []int32
	for _, u := range a.Users {
		got = append(got, u.Unknown)
	}
	for _, r := range a.Roles {
		got = append(got, r.Unknown)
	}
	if want := []int32{0, 5, 0, 0, 6, 0}; !slices.Equal(got, want) {
		t.Errorf("%d, want %d", got, want)
	}
}

// counted is a number and the first of them, "" for none.
func counted(n int64, first Rev) string {
	if n == 0 && first == (Rev{}) {
		return ""
	}
	return fmt.Sprint(n, " ", first)
}

// TestLeaseOfKeys: a live key names a lease that exists. One that was deleted or has another lease by now does not
// count, and without a whole bucket lease nothing is known.
func TestLeaseOfKeys(t *testing.T) {
	const lease = `set lease "\x00\x00\x00\x00\x00\x00\x00\x10" "\x08\x10\x10\x3c"` + "\n"
	for lines, want := range map[string]string{
		lease + "put 2.0 k v lease=0x10":                                      "",
		lease + "put 2.0 k v lease=0x11":                                      "2.0 k 11",
		lease + "put 2.0 x v\nput 2.1 k v lease=0x11\nput 3.0 l v lease=0x12": "2.1 k 11, 3.0 l 12",
		lease + "put 2.0 k v lease=0x11\nput 3.0 k v lease=0x10":              "",
		lease + "put 2.0 k v lease=0x11\ndel 3.0 k":                           "",
		lease + "put 2.0 k v":                                                 "",
		lease + "put 2.0 k v lease=0x11\ncompact 2":                           "2.0 k 11",
		lease + `set lease short ""` + "\nput 2.0 k v lease=0x11":             "unknown",
		"put 2.0 k v lease=0x11":                                              "2.0 k 11",
	} {
		st, err := made(t, lines).KVStats(t.Context())
		fatal(t, err)
		got := ""
		for _, v := range st.Violations {
			if v.Rule != RuleLease || v.Expected != "lease "+ID(v.Lease).String()+" in bucket lease" || v.Page == 0 {
				t.Errorf("%q: %+v", lines, v)
			}
			if got != "" {
				got += ", "
			}
			got += fmt.Sprintf("%s %s %s", v.Rev, v.Key, ID(v.Lease))
		}
		if !st.LeasesChecked {
			got = "unknown"
		}
		if got != want || st.Impossible() {
			t.Errorf("%q: %q, want %q", lines, got, want)
		}
	}
}

// TestSmallestKeys: the first keys by revision are kept, whatever the order in which they come, and the others counted.
func TestSmallestKeys(t *testing.T) {
	for _, n := range []int{1, maxViolations, maxViolations + 7, 2*maxViolations + 3} {
		var s smallestKeys
		for i := n; i > 0; i-- {
			s.add(&liveKey{main: int64((i + 1) / 2), where: uint64(i)})
		}
		kept := s.sort()
		want := min(n, maxViolations)
		if len(kept) != want || s.more != int64(n-want) {
			t.Fatalf("%d keys: %d kept, %d more", n, len(kept), s.more)
		}
		for i := range kept {
			if kept[i].where != uint64(i+1) {
				t.Fatalf("%d keys: number %d is %+v", n, i, kept[i])
			}
		}
	}
}

// TestRowMarks: a mark is of one row, and a place outside of the file has none.
func TestRowMarks(t *testing.T) {
	const size = 2*markChunk + 100
	m := newRowMarks(size)
	places := []uint64{0, rowGrain, 63 * rowGrain, 64 * rowGrain, markChunk - rowGrain, markChunk, 2*markChunk + 64}
	for i, at := range places {
		if m.has(at) {
			t.Errorf("%d is marked before it is", at)
		}
		m.set(at)
		for j, other := range places {
			if m.has(other) != (j <= i) {
				t.Errorf("%d is marked: %t, after %d marks", other, m.has(other), i+1)
			}
		}
	}
	for _, at := range []uint64{3 * markChunk, 1 << 62} {
		if m.set(at); m.has(at) {
			t.Errorf("%d, outside of the file, is marked", at)
		}
	}
}

// TestParseBucket: a bucket's value has root page and sequence, and one without a root page holds its page.
func TestParseBucket(t *testing.T) {
	inline := func(n int) []byte { return make([]byte, n) }
	rooted := append([]byte{7, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0}, "rest"...)
	for name, c := range map[string]struct {
		flags uint32
		value []byte
		want  string // what was observed; "" for a bucket
	}{
		"a row":             {0, inline(32), `a plain row "b"`},
		"root page":         {flagBucket, rooted[:16], ""},
		"root and more":     {flagBucket, rooted, ""},
		"no whole header":   {flagBucket, rooted[:15], "15 bytes"},
		"inline":            {flagBucket, inline(32), ""},
		"inline, no header": {flagBucket, inline(31), "31 bytes"},
		"largest inline":    {flagBucket, inline(maxInline), ""},
		"too large inline":  {flagBucket, inline(maxInline + 1), fmt.Sprint(maxInline+1, " bytes")},
	} {
		l := &leaf{page: &page{id: 3, off: 3 * 4096}}
		b, dmg := parseBucket(l, elem{flags: c.flags, pos: 40, key: []byte("b"), value: c.value})
		if (dmg == nil) != (c.want == "") || dmg != nil && (dmg.Observed != c.want || dmg.Kind != DamageRow) {
			t.Errorf("%s: %v, want %q", name, dmg, c.want)
		}
		if dmg != nil {
			continue
		}
		at := Place{Page: 3, Offset: 3*4096 + 40}
		if b.Inline {
			at.Offset += 1 + bucketHeader
		}
		if b.Name != "b" || b.Place != at || b.Inline != (b.Root == 0) || (b.Root == 7) != (b.Sequence == 3) ||
			b.Inline && len(b.inline) != len(c.value)-bucketHeader {
			t.Errorf("%s: %+v", name, b.Bucket)
		}
	}
}

// TestRank: of finds of one revision the first is one that decodes, then one that damage has cut from the tree.
func TestRank(t *testing.T) {
	order := []find{{decodes: true, origin: OriginUnreachable}, {decodes: true, origin: OriginFree},
		{origin: OriginUnreachable}, {origin: OriginFree}}
	for i := range order[1:] {
		if rank(order[i]) >= rank(order[i+1]) {
			t.Errorf("%+v is not before %+v", order[i], order[i+1])
		}
	}
}

// TestProveRecord: bytes are a record only if a put follows the revision key that has its revision and a key, and that
// ends where the next key or nothing is.
func TestProveRecord(t *testing.T) {
	kv := KeyValue{Key: []byte("k"), CreateRevision: 2, ModRevision: 3, Version: 1, Value: []byte("v"), Lease: 5}
	value := encodeKV(kv)
	with := func(rev Rev, rest ...[]byte) []byte { return append(rev.Bytes(), bytes.Join(rest, nil)...) }
	changed := func(change func(kv *KeyValue)) []byte {
		c := kv
		change(&c)
		return encodeKV(c)
	}
	next := Rev{Main: 4}.Bytes()
	for name, c := range map[string]struct {
		b  []byte
		ok bool
	}{
		"alone":               {with(Rev{Main: 3}, value), true},
		"before another":      {with(Rev{Main: 3}, value, next), true},
		"another revision":    {with(Rev{Main: 4}, value), false},
		"before other bytes":  {with(Rev{Main: 3}, value, []byte("xyz")), false},
		"a field twice":       {with(Rev{Main: 3}, value, value), false},
		"no key":              {with(Rev{Main: 3}, changed(func(kv *KeyValue) { kv.Key = nil })), false},
		"revision 0":          {with(Rev{}, changed(func(kv *KeyValue) { kv.ModRevision = 0 })), false},
		"no value":            {with(Rev{Main: 3}), false},
		"not a revision key":  {append([]byte("0123456789abcdefg"), value...), false},
		"an unknown field":    {with(Rev{Main: 3}, value, []byte{7 << 3, 1}), false},
		"a field of no known": {with(Rev{Main: 3}, value[:len(value)-2], []byte{6<<3 | 2, 1, 'x'}), false},
	} {
		n, ok := proveRecord(c.b)
		if ok != c.ok || ok && n != len(value) {
			t.Errorf("%s: %d bytes, %t; want %t", name, n, ok, c.ok)
		}
	}
}
