package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/internal/plural"
)

var snapLeftovers = described(Check{
	ID:  S04,
	Run: runSnapLeftovers,
})

func runSnapLeftovers(in *Input) Result {
	var fs []Finding
	seen := false
	for _, m := range in.Members {
		if !m.HasSnap() {
			continue
		}
		seen = true
		files := defragFiles(m)
		if f := leftoverFinding(m, KindDefragLeftover, "db.tmp", files); f != nil {
			f.Title = fmt.Sprintf("%s: a defragmentation was interrupted (%s left)", m.Label(),
				plural.Of(len(files), "file", "files"))
			fs = append(fs, *f)
		}
		files = idleFiles(m)
		if f := leftoverFinding(m, KindSnapLeftover, "leftover", files); f != nil {
			f.Title = fmt.Sprintf("%s: %s in the snap folder that nothing needs", m.Label(),
				plural.Of(len(files), "file", "files"))
			fs = append(fs, *f)
		}
	}
	if !seen {
		return Result{Reason: "no source has a snap folder"}
	}
	return outcome(fs, "")
}

// idle is a file without use, and the reason.
type idle struct {
	name, what string
	size       int64
}

func leftoverFinding(m *evidence.Member, kind Kind, field string, files []idle) *Finding {
	if len(files) == 0 {
		return nil
	}
	f := &Finding{Kind: kind, Severity: Info, Members: []string{m.Label()},
		Explanation: "copy them with the rest of the " +
			"evidence, then they can be deleted"}
	if more := len(files) - maxPlaces; more > 0 {
		f.Explanation = fmt.Sprintf("%d files, of which the first %d are listed; %s", len(files), maxPlaces,
			f.Explanation)
		files = files[:maxPlaces]
	}
	for _, x := range files {
		f.Evidence = append(f.Evidence, Evidence{Member: m.Label(), File: x.name, Length: x.size, Field: field,
			Observed: x.what, Show: showLogAs(m, "--snaps")})
	}
	return f
}

func defragFiles(m *evidence.Member) []idle {
	var out []idle
	for _, l := range m.Snap.LeftOvers {
		if strings.HasPrefix(l.Name, "db.tmp") {
			out = append(out, idle{l.Name, "the copy of a defragmentation that did not end", l.Size})
		}
	}
	return out
}

func idleFiles(m *evidence.Member) []idle {
	var out []idle
	for _, l := range m.Snap.LeftOvers {
		if strings.HasPrefix(l.Name, "tmp") {
			out = append(out, idle{l.Name, "a snapshot transfer that did not end", l.Size})
		}
	}
	for _, f := range m.Snap.Files {
		switch {
		case m.AbandonedSnap(f):
			out = append(out, idle{f.File, cutText(f) + " that a server set aside; a server that is killed while it " +
				"writes the content leaves one", f.Size})
		case m.UnfinishedSnap(f):
			out = append(out, idle{f.File, cutText(f) + " that the log does not name; a server that is killed while " +
				"it writes the content leaves one", f.Size})
		case f.Broken:
			out = append(out, idle{f.File, "a snapshot that a server could not read and set aside", f.Size})
		}
	}
	for _, d := range m.Snap.SnapDBs {
		if m.HasDB() && m.HasLog() && !pendingInstall(m, d.Index) {
			out = append(out, idle{d.File, fmt.Sprintf("a received database of index %d; the database has applied %d",
				d.Index, m.ConsistentIndex()), d.Size})
		}
	}
	return out
}

func cutText(f *dumplog.SnapFile) string {
	if f.Size == 0 {
		return "an empty snapshot"
	}
	return "a snapshot that is cut short"
}

// pendingInstall reports whether a start would install the received database of that index.
func pendingInstall(m *evidence.Member, index uint64) bool {
	return index > m.ConsistentIndex() && slices.ContainsFunc(m.WAL.Summary.Snapshots,
		func(s dumplog.SnapshotRecord) bool { return s.Index == index })
}
