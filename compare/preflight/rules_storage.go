package preflight

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/release"
	"github.com/etcd-medic/etcd-medic/shell"
)

// stopsBolt reports whether bbolt notices the damage when it opens a file for writing.
func stopsBolt(k dumpdb.DamageKind) bool {
	switch k {
	case dumpdb.DamageMeta, dumpdb.DamageMetaHeader, dumpdb.DamageRow, dumpdb.DamageFreelist,
		dumpdb.DamageBucket, dumpdb.DamageEmpty:
		return false
	}
	return true
}

var snapChosen = described(Rule{
	ID: "P03", Level: Warns, Not: release.SnapFileUnused,
	Run: func(d *dir) *verdict {
		if why := d.snapsLeftOut(); why != "" {
			return unknown("%s", why)
		}
		var at []check.Evidence
		for _, f := range d.m.Snap.Files {
			if f.Damage != nil && !f.Broken && f.NameIndex >= d.snapIndex {
				at = append(at, check.Evidence{Member: d.m.Label(), File: f.File, Observed: f.Damage.Error(),
					Expected: "a raft snapshot"})
			}
		}
		if len(at) == 0 {
			return nil
		}
		return &verdict{says: fmt.Sprintf("%d .snap files do not decode; the server renames them and starts from "+
			"index %d", len(at), d.snapIndex),
			server: "failed to read a snap file; renamed corrupted snap file", evidence: at}
	},
})

var v2Content = described(Rule{
	ID: "P04", Level: Stops, Needs: theLog, Only: release.V2KeysRefused,
	Run: func(d *dir) *verdict {
		if why := d.snapsLeftOut(); why != "" {
			return unknown("%s", why)
		}
		if d.snap == nil || d.snap.V2 == nil || len(d.snap.V2.UserKeys) == 0 {
			return nil
		}
		k := d.snap.V2.UserKeys
		return &verdict{says: fmt.Sprintf("the v2 store has %d keys of users, first %s", len(k), k[0]),
			server: "detected disallowed custom content in v2store for stage --v2-deprecation=write-only",
			evidence: []check.Evidence{{Member: d.m.Label(), File: d.snap.File, Field: "v2 store",
				Observed: strings.Join(k[:min(5, len(k))], " "), Expected: "no keys below /1",
				Show: shell.Format("etcd-medic dumplog {} --snaps", d.arg)}}}
	},
})

var dbReachesSnapshot = described(Rule{
	ID: "P05", Level: Stops, Needs: theLog | theDB,
	Run: func(d *dir) *verdict {
		ci := d.m.ConsistentIndex()
		if d.snapIndex == 0 || ci >= d.snapIndex {
			return nil
		}
		for _, s := range d.m.Snap.SnapDBs {
			if s.Index == d.snapIndex {
				return nil
			}
		}
		if why := d.dbLeftOut(); why != "" {
			return unknown("what the database has applied is not known: %s", why)
		}
		return &verdict{says: fmt.Sprintf("the database has applied entry %d, the raft snapshot is at %d, and "+
			"%016x.snap.db is missing", ci, d.snapIndex, d.snapIndex),
			server: "failed to recover v3 backend from snapshot: failed to find database snapshot file (snap: " +
				"snapshot file doesn't exist)",
			evidence: []check.Evidence{d.atDB("meta", "consistent_index", fmt.Sprint(ci),
				fmt.Sprintf("at least %d", d.snapIndex))}}
	},
})

var storageVersion = described(Rule{
	ID: "P06", Level: Stops, Needs: theDB, Only: release.StorageVersion,
	Run: func(d *dir) *verdict {
		if !d.m.HasDB() {
			return nil
		}
		v := d.m.DB.Meta.StorageVersion
		if v == "" || !lineOf(v).Above(d.to.line()) {
			return nil
		}
		return &verdict{says: "a server of etcd " + strings.TrimSuffix(v, ".0") + " has raised the storage",
			server:   fmt.Sprintf("Failed to validate schema: version %q is not supported", v),
			evidence: []check.Evidence{d.atDB("meta", "storageVersion", v, fmt.Sprintf("3.%d.0 or older", d.to.Minor))}}
	},
})

var logReadable = described(Rule{
	ID: "P07", Level: Stops, Needs: theLog,
	Run: func(d *dir) *verdict {
		if !d.hasLog() {
			return nil
		}
		var at []check.Evidence
		said := ""
		for _, x := range d.m.WAL.Summary.Damage {
			if !refuses(x) || x.Kind == dumplog.DamageLostTail { // which is for the next rule
				continue
			}
			if said == "" {
				said = cmp.Or(x.Message, x.Server)
			}
			at = append(at, check.Evidence{Member: d.m.Label(), File: x.Segment, Offset: check.Int64(x.Offset),
				Length: x.Len, Field: string(x.Kind), Observed: x.Error(), Expected: "a record that reads",
				Show: shell.Format("etcd-medic dumplog {} --raw", d.arg)})
		}
		if len(at) == 0 {
			return nil
		}
		return &verdict{says: "the log is damaged at " + plural.Of(len(at), "place", "places") +
			" that the server does not repair",
			server: said, evidence: firstN(at)}
	},
})

// refuses reports whether a server stops at this damage. logTail reports damage that it repairs, ignores or does not
// notice.
func refuses(x *dumplog.DamageError) bool { return x.OnStart == dumplog.StartRefused }

var logReachesSnapshot = described(Rule{
	ID: "P08", Level: Stops, Needs: theLog,
	Run: func(d *dir) *verdict {
		if !d.hasLog() {
			return nil
		}
		s := &d.m.WAL.Summary
		if len(s.Segments) > 0 && s.Segments[0].First > d.snapIndex {
			return &verdict{says: fmt.Sprintf("the oldest segment starts at index %d, the raft snapshot in use "+
				"is at %d", s.Segments[0].First, d.snapIndex),
				server: fmt.Sprintf("wal: file not found which matches the snapshot index '%d' (up to 3.5: wal: file "+
					"not found)", d.snapIndex),
				evidence: []check.Evidence{{Member: d.m.Label(), File: s.Segments[0].Name, Field: "first index",
					Observed: fmt.Sprint(s.Segments[0].First),
					Expected: fmt.Sprintf("at most %d", d.snapIndex)}}}
		}
		for _, j := range s.Jumps {
			if v := d.acrossGap(j); v != nil {
				return v
			}
		}
		return nil
	},
})

// acrossGap is what a server does where a received snapshot stands for entries of the log, and the snapshot in use is
// an older one. nil: the one in use covers the gap.
func (d *dir) acrossGap(j dumplog.Jump) *verdict {
	switch {
	case d.snapIndex >= j.To:
		return nil
	case d.snapIndex < j.From-1 && !d.to.Follows(release.LogGapRefused): // entries between are read before the gap
		return unknown("entries %d to %d are not in the log, and the snapshot in use is at %d: whether the server "+
			"notices that is not known", j.From, j.To, d.snapIndex)
	}
	return &verdict{says: fmt.Sprintf("entries %d to %d are not in the log: the member received a snapshot there, and "+
		"the one in use is at %d", j.From, j.To, d.snapIndex),
		server: "wal: slice bounds out of range",
		evidence: []check.Evidence{{Member: d.m.Label(), File: j.Segment, Offset: check.Int64(j.Offset),
			Field: "entries", Observed: "absent", Expected: "present above the snapshot in use"}}}
}

var dbPresent = described(Rule{
	ID: "P09", Level: Stops,
	Run: func(d *dir) *verdict {
		switch {
		case d.m.DB != nil:
			return nil
		case d.dbLeftOut() != "":
			return unknown("%s", d.dbLeftOut())
		case !d.hasLog():
			return unknown("there is neither a database nor a readable log")
		}
		if d.snapIndex == 0 {
			switch s := &d.m.WAL.Summary; {
			case s.FirstIndex <= 1 && s.Start != dumplog.StartRestore:
				return nil
			case s.FirstIndex <= 1:
				return unknown("the database is missing and the log begins with a restore from a backup: a server " +
					"fills a new database, without what the backup held")
			}
			return unknown("the database is missing and the log does not reach back to its first entry")
		}
		return &verdict{says: "member/snap/db is missing", server: "database file of the backend is missing",
			evidence: []check.Evidence{{Member: d.m.Label(), File: "member/snap/db", Observed: "absent",
				Expected: "present"}}}
	},
})

var logTail = described(Rule{
	ID: "P19", Level: Warns, Needs: theLog,
	Run: func(d *dir) *verdict {
		if !d.hasLog() {
			return nil
		}
		v := &verdict{}
		for _, x := range d.m.WAL.Summary.Damage {
			if !refuses(x) && x.Kind != dumplog.DamagePadding && x.Kind != dumplog.DamageLostTail {
				v.says, v.server = x.Error(), x.Server
				v.evidence = append(v.evidence,
					check.Evidence{Member: d.m.Label(), File: x.Segment, Offset: check.Int64(x.Offset), Length: x.Len,
						Field: string(x.Kind), Observed: x.Error(), Expected: "a whole record"})
			}
		}
		if len(v.evidence) == 0 {
			return nil
		}
		return v
	},
})
