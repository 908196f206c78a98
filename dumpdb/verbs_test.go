package dumpdb

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/cockroachdb/datadriven"
)

// damageVerbs change the bytes of the file; every one takes and returns the whole file.
var damageVerbs = map[string]func(*script, *datadriven.TestData, []byte) []byte{
	"flip": func(s *script, d *datadriven.TestData, b []byte) []byte {
		b[s.at(d)] ^= 1 << arg(s, d, "bit", 0)
		return b
	},
	"zero": func(s *script, d *datadriven.TestData, b []byte) []byte {
		from := s.at(d)
		clear(b[from : from+arg(s, d, "pages", 1)*s.pageSize()])
		return b
	},
	"cut": func(s *script, d *datadriven.TestData, b []byte) []byte { return b[:s.at(d)] },
	"hex": func(s *script, d *datadriven.TestData, b []byte) []byte {
		var text string
		d.ScanArgs(s.t, "hex", &text)
		raw, err := hex.DecodeString(text)
		fatal(s.t, err)
		copy(b[s.at(d):], raw)
		return b
	},
	"drop-meta": func(s *script, d *datadriven.TestData, b []byte) []byte {
		at := arg(s, d, "n", 0) * s.pageSize()
		clear(b[at+headerSize : at+headerSize+metaSize])
		return b
	},
	// meta sets a field of both meta pages and gives them good checksums.
	"meta": func(s *script, d *datadriven.TestData, b []byte) []byte {
		fields := map[string]int{"root": 16, "freelist": 32, "high-water": 40}
		for n := range int64(2) {
			h := b[n*s.pageSize()+headerSize:]
			for name, at := range fields {
				if d.HasArg(name) {
					le.PutUint64(h[at:], uint64(arg(s, d, name, 0)))
				}
			}
			sum := fnv.New64a()
			sum.Write(h[:56])
			le.PutUint64(h[56:], sum.Sum64())
		}
		return b
	},
	// child makes element index of branch page lead to another page.
	"child": func(s *script, d *datadriven.TestData, b []byte) []byte {
		at := s.at(d) + headerSize + arg(s, d, "index", 0)*elemSize
		le.PutUint64(b[at+8:], uint64(arg(s, d, "to", 0)))
		return b
	},
	"grow": func(s *script, d *datadriven.TestData, b []byte) []byte {
		return append(b, make([]byte, arg(s, d, "by", 0))...)
	},
}

func (s *script) at(d *datadriven.TestData) int64 {
	return arg(s, d, "page", 0)*s.pageSize() + arg(s, d, "at", 0)
}

// pageSize is that of the file; scripts that kill both metas use 4096.
func (s *script) pageSize() int64 {
	db, err := Open(s.path)
	if err != nil {
		return 4096
	}
	defer db.Close()
	return int64(db.PageSize())
}

type asker = func(*script, *datadriven.TestData, *DB, *strings.Builder)

// askVerbs read the file.
var askVerbs = map[string]asker{
	"check": func(s *script, d *datadriven.TestData, db *DB, out *strings.Builder) {
		r, err := db.Check(bg)
		fatal(s.t, err)
		for _, dmg := range r.Damage {
			printDamage(out, dmg)
		}
		fmt.Fprintf(out, "pages %d reachable %d free %d lost %d freelist %v complete %v\n", r.Pages, r.Reachable,
			r.Free, r.Lost, r.FreelistStored, r.Complete)
	},
	"metas": func(s *script, d *datadriven.TestData, db *DB, out *strings.Builder) {
		for _, m := range db.Metas() {
			fmt.Fprintf(out, "meta %d at 0x%x: txid %d root %d high-water %d page size %d valid %v used %v %s%s\n",
				m.Page, m.Offset, m.Txid, m.Root,
				m.HighWater, m.PageSize, m.Valid, m.Used, m.Problem, m.HeaderProblem)
		}
	},
	"buckets": func(s *script, d *datadriven.TestData, db *DB, out *strings.Builder) {
		buckets, damage := db.Buckets()
		for _, b := range buckets {
			fmt.Fprintf(out, "%q root %d inline %v at page %d 0x%x\n", b.Name, b.Root, b.Inline, b.Page, b.Offset)
		}
		for _, dmg := range damage {
			printDamage(out, dmg)
		}
	},
	"rows": func(s *script, d *datadriven.TestData, db *DB, out *strings.Builder) {
		var bucket string
		d.ScanArgs(s.t, "bucket", &bucket)
		for r, err := range db.Rows(bucket) {
			if err != nil {
				printErr(out, err)
				continue
			}
			fmt.Fprintf(out, "page %d 0x%x: %s = %s\n", r.Page, r.Offset, showKey(r.Key), short(r.Value))
		}
	},
	"revisions": func(s *script, d *datadriven.TestData, db *DB, out *strings.Builder) {
		for r, err := range db.RevisionsFrom(Rev{Main: arg(s, d, "from", 0)}) {
			printRevision(out, r, err)
		}
	},
	"query": func(s *script, d *datadriven.TestData, db *DB, out *strings.Builder) {
		for r, err := range db.Query(bg, s.query(d)) {
			printRevision(out, r, err)
		}
	},
	"stats": func(s *script, d *datadriven.TestData, db *DB, out *strings.Builder) {
		st, err := db.KVStats(bg)
		fmt.Fprintf(out, "current %d compact %d first %s last %s revisions %d tombstones %d live %d bump %s\n",
			st.CurrentRev, st.CompactRev,
			st.FirstRev, st.LastRev, st.Revisions, st.Tombstones, st.LiveKeys, st.BumpMarker)
		if st.Strays > 0 {
			fmt.Fprintf(out, "tombstones of no record %d first %s\n", st.Strays, st.FirstStray)
		}
		for _, v := range st.Violations {
			fmt.Fprintf(out, "%s %s page %d key %q: expected %s, observed %s\n", v.Rev, v.Rule, v.Page, v.Key,
				v.Expected, v.Observed)
		}
		printErr(out, err)
	},
	"hashkv": func(s *script, d *datadriven.TestData, db *DB, out *strings.Builder) {
		h, err := db.HashKV(bg, arg(s, d, "rev", 0))
		if err == nil {
			fmt.Fprintf(out, "hash %d revision %d compact revision %d\n", h.Hash, h.Rev, h.CompactRev)
		}
		printErr(out, err)
	},
	"hash": func(s *script, d *datadriven.TestData, db *DB, out *strings.Builder) {
		var bucket string
		d.ScanArgs(s.t, "bucket", &bucket)
		h, err := db.BucketHash(bg, bucket)
		fmt.Fprintf(out, "%q\n", h[:min(len(h), 16)])
		printErr(out, err)
	},
	"salvage": func(s *script, d *datadriven.TestData, db *DB, out *strings.Builder) {
		for r, err := range db.SalvageRevisions(bg) {
			if err == nil {
				fmt.Fprintf(out, "%s copies %d conflicts %d page %d: ", r.Origin, r.Copies, r.Conflicts, r.Page)
			}
			printRevision(out, r.Revision, err)
		}
	},
	"pages": func(s *script, d *datadriven.TestData, db *DB, out *strings.Builder) {
		beyond := 0
		defer func() { fmt.Fprintf(out, "%d pages beyond\n", beyond) }()
		for p, err := range db.Pages(bg) {
			if p.State == PageBeyond {
				beyond++
				continue
			}
			fmt.Fprintf(out, "%d %s %s count %d overflow %d %s\n", p.Page, p.State, p.Type, p.Count, p.Overflow,
				p.Bucket)
			printErr(out, err)
		}
	},
	"page": func(s *script, d *datadriven.TestData, db *DB, out *strings.Builder) {
		p, err := db.Page(uint64(arg(s, d, "id", 0)))
		if err != nil {
			printErr(out, err)
			return
		}
		fmt.Fprintf(out, "says %d type %s count %d overflow %d bytes %d freelist %v\n", p.SelfID, p.Type, p.Count,
			p.Overflow, len(p.Data), p.Freelist)
		for _, e := range p.Elements {
			fmt.Fprintf(out, "  %d 0x%x child %d bucket %v %s = %s\n", e.Index, e.Offset, e.Child, e.Bucket,
				showKey(e.Key), short(e.Value))
		}
		for _, dmg := range p.Damage {
			printDamage(out, dmg)
		}
	},
	"small": func(s *script, d *datadriven.TestData, db *DB, out *strings.Builder) {
		m, metaErr := db.MetaBucket()
		a, authErr := db.Auth()
		members, memberErr := db.Members()
		leases, leaseErr := db.Leases()
		alarms, alarmErr := db.Alarms()
		_, clusterErr := db.Cluster()
		fmt.Fprintf(out, "unknown %d, users %d, roles %v, members %d, leases %d, alarms %d, missing %v\n",
			len(m.Unknown), len(a.Users), a.Roles,
			len(members), len(leases), len(alarms), db.MissingBuckets())
		for _, err := range []error{metaErr, authErr, memberErr, leaseErr, alarmErr, clusterErr} {
			printErr(out, err)
		}
	},
	"usage": func(s *script, d *datadriven.TestData, db *DB, out *strings.Builder) {
		u, err := db.Usage(bg, s.query(d), int(arg(s, d, "depth", 1)))
		for _, g := range slices.Concat([]Group{u.Total}, u.Prefixes, u.Kinds) {
			fmt.Fprintf(out, "%q keys %d revisions %d tombstones %d bytes %d live %d max value %d\n", g.Name, g.Keys,
				g.Revisions, g.Tombstones, g.Bytes, g.LiveBytes, g.MaxValue)
		}
		fmt.Fprintf(out, "largest %q %s %d, busiest %q %d\n", u.Largest[0].Key, u.Largest[0].Rev, u.Largest[0].Bytes,
			u.Busiest[0].Key, u.Busiest[0].Revisions)
		printErr(out, err)
	},
}

func (s *script) query(d *datadriven.TestData) Query {
	var key, end, prefix string
	d.MaybeScanArgs(s.t, "end", &end)
	d.MaybeScanArgs(s.t, "key", &key)
	d.MaybeScanArgs(s.t, "prefix", &prefix)
	q := Query{Prefix: []byte(prefix), FromRev: arg(s, d, "from", 0), ToRev: arg(s, d, "to", 0),
		Rev:  arg(s, d, "rev", 0),
		Live: d.HasArg("live"), Deleted: d.HasArg("deleted")}
	if key != "" {
		q.Key = []byte(key)
	}
	if end != "" {
		q.RangeEnd = []byte(end)
	}
	return q
}

func printDamage(out *strings.Builder, d *DamageError) {
	fmt.Fprintf(out, "! %v", d)
	if d.FirstKey != nil || d.LastKey != nil {
		end := "the end"
		if d.LastKey != nil {
			end = showKey(d.LastKey)
		}
		fmt.Fprintf(out, " [%s, %s)", showKey(d.FirstKey), end)
	}
	out.WriteString("\n")
}

func printErr(out *strings.Builder, err error) {
	var all Damages
	var one *DamageError
	switch {
	case err == nil:
	case errors.As(err, &all):
		for _, d := range all {
			printDamage(out, d)
		}
	case errors.As(err, &one):
		printDamage(out, one)
	default:
		fmt.Fprintf(out, "error: %v\n", err)
	}
}

func printRevision(out *strings.Builder, r Revision, err error) {
	if err != nil {
		printErr(out, err)
		return
	}
	fmt.Fprintf(out, "%s %q create %d mod %d version %d lease %s value %s", r.Rev, r.KV.Key, r.KV.CreateRevision,
		r.KV.ModRevision, r.KV.Version,
		ID(r.KV.Lease), short(r.KV.Value))
	if r.Tombstone {
		out.WriteString(" tombstone")
	}
	if r.Err != nil {
		fmt.Fprintf(out, " error: %v", r.Err)
	}
	out.WriteString("\n")
}

func short(b []byte) string {
	if len(b) > 24 {
		return fmt.Sprintf("(%d bytes, %d zero)", len(b), bytes.Count(b, []byte{0}))
	}
	return fmt.Sprintf("%q", b)
}
