package preflight

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
	"github.com/etcd-medic/etcd-medic/shell"
)

// dir is a data dir as seen by a server of one version.
type dir struct {
	to      Version
	m       *evidence.Member
	arg     shell.Word // the dir on a command line
	mu      sync.Mutex
	found   map[int]*[]entry // by segment
	entries []entry          // of the effective log, those that matter to some version
	// snapIndex and snapTerm are those of the raft snapshot from which this version starts, 0 for none. snap is its
	// file, which 3.7 does not need.
	snapIndex, snapTerm uint64
	snap                *dumplog.SnapFile
}

// visit collects the entries that rules need while the log is read. Segments are read in parallel.
func (d *dir) visit(segment int) func(*dumplog.Entry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.found == nil {
		d.found = map[int]*[]entry{}
	}
	mine := new([]entry)
	d.found[segment] = mine
	return func(e *dumplog.Entry) {
		own := *e
		r, err := own.Decode()
		if err != nil || r == nil {
			return
		}
		x := entry{pos: e.Pos, term: e.Term, index: e.Index, kind: r.Kind}
		switch {
		case r.Kind == dumplog.KindV2 && r.V2 != nil:
			v2 := *r.V2
			x.v2 = &v2
		case r.ConfChange != nil:
			c := *r.ConfChange
			c.Context = bytes.Clone(c.Context)
			x.conf = &c
		case r.ClusterVer != nil:
			x.version = strings.Clone(r.ClusterVer.Version)
		case knownBy[r.Kind] != nil:
		case !utf8.ValidString(r.Header.Username):
			x.badUser = strings.Clone(r.Header.Username)
		default:
			return
		}
		*mine = append(*mine, x)
	}
}

// knownBy are the rules of the servers that know a request. Other servers panic when they execute it.
var knownBy = map[dumplog.Kind]*release.Rule{
	dumplog.KindLeaseCheckpoint: release.LeaseCheckpoints, dumplog.KindClusterVersionSet: release.ClusterRequests,
	dumplog.KindClusterMemberAttrSet: release.ClusterRequests, dumplog.KindDowngradeInfoSet: release.ClusterRequests,
	dumplog.KindDowngradeVersionTest: release.DowngradeTests,
}

// prepare drops overwritten entries and selects the snapshot.
func (d *dir) prepare(m *evidence.Member) {
	d.m = m
	if !m.HasWAL() {
		return
	}
	s := &m.WAL.Summary
	at := map[string]int{}
	for i := range s.Segments {
		at[s.Segments[i].Name] = i
	}
	for _, i := range slices.Sorted(maps.Keys(d.found)) {
		for _, e := range *d.found[i] {
			replaced := slices.ContainsFunc(s.Overwrites, func(o dumplog.Overwrite) bool {
				return o.Index <= e.index && cmp.Or(cmp.Compare(at[o.Segment], i),
					cmp.Compare(o.Offset, e.pos.Offset)) > 0
			})
			if !replaced {
				d.entries = append(d.entries, e)
			}
		}
	}
	d.pickSnapshot(s)
}

// pickSnapshot selects the snapshot like the server's release; see the package comment. A record above the commit index
// of the last HardState does not count.
func (d *dir) pickSnapshot(s *dumplog.Summary) {
	commit := uint64(0)
	if s.HardState != nil {
		commit = s.HardState.Commit
	}
	known := map[[2]uint64]bool{}
	for _, r := range s.Snapshots {
		if r.Index > commit {
			continue
		}
		known[[2]uint64{r.Term, r.Index}] = true
		if d.to.Follows(release.SnapFileUnused) {
			d.snapTerm, d.snapIndex = r.Term, r.Index
		}
	}
	if d.to.Follows(release.SnapFileUnused) || !d.m.HasSnap() {
		return
	}
	orphans := !d.to.Follows(release.SnapNeedsRecord)
	for _, f := range d.m.Snap.Files {
		if f.Damage != nil || f.Broken || !orphans && !known[[2]uint64{f.Term, f.Index}] {
			continue
		}
		if d.snap == nil || f.Term > d.snap.Term || f.Term == d.snap.Term && f.Index > d.snap.Index {
			d.snap, d.snapTerm, d.snapIndex = f, f.Term, f.Index
		}
	}
}

// snapsLeftOut returns why the .snap files were not examined, "" if they were, or if there are none.
func (d *dir) snapsLeftOut() string { return d.leftOut("snap") }

// dbLeftOut returns why the database was not opened although it may be sound, "" if it was, or if there is none.
func (d *dir) dbLeftOut() string {
	if d.m.DB != nil {
		return ""
	}
	return d.leftOut("db")
}

// leftOut returns why a part could not be read, "" if it could, or if there is none.
func (d *dir) leftOut(part string) string {
	for _, p := range d.m.Problems {
		if p.Part == part {
			return fmt.Sprintf("%s: %v", p.File, p.Err)
		}
	}
	return ""
}

// replayed returns the collected entries that the server reads again: those above the snapshot.
func (d *dir) replayed() []entry {
	var out []entry
	for _, e := range d.entries {
		if e.index > d.snapIndex {
			out = append(out, e)
		}
	}
	return out
}

// executed returns the replayed entries that the server executes: those also above the consistent index of the
// database.
func (d *dir) executed() []entry {
	var out []entry
	for _, e := range d.replayed() {
		if e.index > d.m.ConsistentIndex() {
			out = append(out, e)
		}
	}
	return out
}

func (d *dir) hasLog() bool { return d.m.HasWAL() }

// atEntry returns evidence at an entry of the log.
func (d *dir) atEntry(e *entry, observed, expected string) check.Evidence {
	return check.Evidence{Member: d.m.Label(), File: e.pos.Segment, Offset: check.Int64(e.pos.Offset),
		Field:    fmt.Sprintf("entry %d/%d", e.term, e.index),
		Observed: observed, Expected: expected, Show: shell.Format("etcd-medic dumplog {} --index {}", d.arg, e.index)}
}

// atDB returns evidence in the database.
func (d *dir) atDB(bucket, key, observed, expected string) check.Evidence {
	e := check.Evidence{Member: d.m.Label(), File: "db", Bucket: bucket, Key: check.Bytes(key), Observed: observed,
		Expected: expected, Show: shell.Format("etcd-medic dumpdb {} {}", d.arg, bucket)}
	if d.m.DB != nil {
		e.File = d.m.DB.File
	}
	return e
}

// firstN bounds evidence.
func firstN(all []check.Evidence) []check.Evidence { return all[:min(len(all), 20)] }

// lineOf returns the minor version of a version, unknown if the text is not a version.
func lineOf(v string) release.Version {
	n, _ := evidence.MinorOf(v)
	return release.AnyOf(n)
}
