package preflight

import (
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/release"
	"github.com/etcd-medic/etcd-medic/shell"
)

// Rule is one start-up check of etcd, or one change that a start makes.
type Rule struct {
	ID, Title string
	// Doc says what must hold, for which versions, and the upstream file that checks it.
	Doc string
	// Only restricts the rule to servers that follow it, Not to servers that do not; nil means no restriction.
	Only, Not *release.Rule
	Level     Level
	// Needs are the parts of the dir without which the rule cannot be said to hold. That a part is missing is for the
	// rules P01 and P09: such a rule alone does not leave open whether the server starts.
	Needs part
	Run   func(*dir) *verdict
}

// part is a part of a data dir, or several. theMembers are in the database for servers that read the members there.
type part uint8

const (
	theLog part = 1 << iota
	theDB
	theMembers
)

// lacks says which of the parts there is not, "" if there are all.
func (d *dir) lacks(parts part) string {
	switch {
	case parts&theLog != 0 && !d.hasLog():
		return "there is no readable log"
	case d.m.HasDB():
	case parts&theDB != 0, parts&theMembers != 0 && d.to.Follows(release.MembersFromDB):
		return "there is no database that opens"
	}
	return ""
}

// concerns reports whether the rule applies to servers of a version.
func (r *Rule) concerns(v Version) bool {
	return (r.Only == nil || v.Follows(r.Only)) && (r.Not == nil || !v.Follows(r.Not))
}

// Lines lists the minor versions to which the rule applies, according to the newest release of each.
func (r *Rule) Lines() (minors []int) {
	for _, minor := range release.Minors() {
		if r.concerns(Version{Minor: minor, Patch: -1}) {
			minors = append(minors, minor)
		}
	}
	return minors
}

// Rules returns all rules in the order of a start, followed by those that stop nothing. To add a rule, add a value in a
// file of its topic and a line here; its text is in prose/ID.md.
func Rules() []Rule {
	return []Rule{
		logPresent,
		dbOpens,
		snapChosen,
		v2Content,
		dbReachesSnapshot,
		storageVersion,
		logReadable,
		logReachesSnapshot,
		dbPresent,
		clusterVersion,
		commitInLog,
		rowsDecode,
		v2Entries,
		knownRequests,
		learnerEntries,
		userNames,
		selfRemoved,
		selfListed,
		logTail,
		hiddenVersion,
		membersDrift,
		raisesVersions,
		skipsLines,
	}
}

var logPresent = described(Rule{
	ID: "P01", Level: Stops,
	Run: func(d *dir) *verdict {
		if d.hasLog() {
			return nil
		}
		return unknown("there is no readable log: what the server does then depends on its flags and peers, not on " +
			"the dir")
	},
})

var dbOpens = described(Rule{
	ID: "P02", Level: Stops, Needs: theDB,
	Run: func(d *dir) *verdict {
		db := d.m.DB
		if db == nil {
			return nil
		}
		if db.Handle == nil {
			v := &verdict{says: "bbolt cannot open the database", server: "failed to open database"}
			for _, x := range db.Damage {
				v.evidence = append(v.evidence,
					check.Evidence{Member: d.m.Label(), File: db.File, Page: check.Uint64(x.Page),
						Offset: check.Int64(x.Offset), Observed: x.Error(), Expected: "a bbolt file"})
			}
			return v
		}
		var at []check.Evidence
		for _, x := range db.Damage {
			if stopsBolt(x.Kind) {
				at = append(at, check.Evidence{Member: d.m.Label(), File: db.File, Page: check.Uint64(x.Page),
					Offset: check.Int64(x.Offset), Bucket: x.Bucket,
					Observed: x.Error(), Expected: "a sound page",
					Show: shell.Format("etcd-medic dumpdb {} --page {}", d.arg, x.Page)})
			}
		}
		if len(at) == 0 {
			return nil
		}
		return &verdict{says: "the page graph is damaged in " + plural.Of(len(at), "place", "places"),
			server: "panic: freepages: failed to get all reachable pages, or: assertion failed: Page expected to be: " +
				"N, but self identifies as M", evidence: firstN(at)}
	},
})
