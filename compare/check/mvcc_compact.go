package check

import (
	"bytes"
	"context"
	"fmt"

	"github.com/etcd-medic/etcd-medic/compare/diff"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/release"
)

var compactTombstones = described(Check{
	ID:    K07,
	Needs: NeedDB | NeedTwo,
	Run:   runCompactTombstones,
})

func runCompactTombstones(in *Input) Result {
	byRev := map[int64]*Finding{}
	with, without := map[int64]int{}, map[int64]int{}
	var order []int64
	for _, m := range in.Members {
		if !m.HasDB() || m.DB.KV == nil || m.DB.KVDamaged || m.DB.Meta.FinishedCompact == nil {
			continue
		}
		rev := m.DB.Meta.FinishedCompact.Main
		n := tombstonesAt(in.Context(), m, rev)
		f := byRev[rev]
		if f == nil {
			f = &Finding{Kind: KindTombstonesDiffer, Severity: Info}
			byRev[rev], order = f, append(order, rev)
		}
		f.Members = append(f.Members, m.Label())
		e := Evidence{Member: m.Label(), File: m.DB.File, Bucket: "key", Field: fmt.Sprintf("revision %d", rev),
			Observed: plural.Of(n, "tombstone", "tombstones"),
			Expected: "the same on all members, or members of both kinds of release", Show: showRev(m, rev)}
		if f.Evidence = append(f.Evidence, e); n > 0 {
			with[rev]++
		} else {
			without[rev]++
		}
	}
	var fs []Finding
	for _, rev := range order {
		if with[rev] == 0 || without[rev] == 0 {
			continue
		}
		f := byRev[rev]
		f.At.Revision = &Rev{Main: rev}
		f.Title = fmt.Sprintf("the tombstones at the compact revision %d are there on %s and dropped on %d",
			rev, plural.Of(with[rev], "member", "members"), without[rev])
		f.Explanation = "releases before and after 3.4.34 / 3.5.16 compacted this cluster; the key is deleted on all " +
			"of them"
		fs = append(fs, *f)
	}
	if len(order) == 0 {
		return Result{Reason: "no two databases have finished a compaction"}
	}
	return outcome(fs, "")
}

// tombstonesAt counts the tombstones of one main revision.
func tombstonesAt(ctx context.Context, m *evidence.Member, rev int64) (n int) {
	for r, err := range m.DB.Handle.Query(ctx, dumpdb.Query{FromRev: rev, ToRev: rev}) {
		if err == nil && r.Err == nil && r.Tombstone {
			n++
		}
	}
	return n
}

var revisionNotBelowCompact = described(Check{
	ID:    K10,
	Needs: NeedDB,
	Run:   runRevisionNotBelowCompact,
})

func runRevisionNotBelowCompact(in *Input) Result {
	var fs []Finding
	for _, m := range in.Members {
		if !m.HasDB() || m.DB.KV == nil || m.DB.KVDamaged {
			continue
		}
		s, f := m.DB.Meta.ScheduledCompact, m.DB.Meta.FinishedCompact
		last := m.DB.KV.LastRev.Main
		if old := belowFinished(m); old != nil {
			fs = append(fs, *old)
		}
		if s == nil || f != nil && f.Main >= s.Main || last >= s.Main {
			continue
		}
		sev := Warning
		if m.Version.Follows(release.RestoreCountsScheduled) {
			sev = Info
		}
		fs = append(fs, Finding{Kind: KindRevisionBelowScheduled, Severity: sev, Members: []string{m.Label()},
			At: At{Revision: &Rev{Main: last}},
			Title: fmt.Sprintf("%s: the newest record has revision %d, below the unfinished compaction at %d",
				m.Label(), last, s.Main),
			Explanation: "tombstones at the end were removed and the compaction did not finish; a release that does " +
				"not know this state starts with the lower revision",
			Evidence: []Evidence{{Member: m.Label(), File: m.DB.File, Bucket: "meta", Key: Bytes("scheduledCompactRev"),
				Field: "scheduledCompactRev", Observed: fmt.Sprint(s.Main),
				Expected: fmt.Sprintf("at most %d, the newest record, or a finished compaction", last),
				Show:     showDB(m, "meta")}},
			Remedy: []Remedy{{Text: "start the member with 3.4.32, 3.5.14, 3.6.0 or later only"}}})
	}
	if r := reusedRevisions(in); r != nil {
		fs = append(fs, *r)
	}
	return outcome(fs, "")
}

// belowFinished: on data of 3.0 the newest record is below a finished compaction, which its first releases did not
// count.
func belowFinished(m *evidence.Member) *Finding {
	f, last := m.DB.Meta.FinishedCompact, m.DB.KV.LastRev.Main
	wrote := m.Version.Named()
	if !wrote.Known() || wrote.Has(release.RestoreCountsFinished).Certain() || f == nil || last >= f.Main {
		return nil
	}
	return &Finding{Kind: KindRevisionBelowFinished, Severity: Info, Members: []string{m.Label()},
		At: At{Revision: &Rev{Main: last}},
		Title: fmt.Sprintf("%s: the newest record has revision %d, the finished compaction is at %d",
			m.Label(), last, f.Main),
		Explanation: "3.0.0 to 3.0.12 start with the lower revision; later releases with that of the compaction",
		Evidence: []Evidence{{Member: m.Label(), File: m.DB.File, Bucket: "meta", Key: Bytes("finishedCompactRev"),
			Field: "newest record below the finished compaction", Observed: fmt.Sprint(f.Main),
			Expected: fmt.Sprintf("at most %d, or a release that counts it", last), Show: showDB(m, "meta")}}}
}

// reusedRevisions finds members that used a revision for two writes. At the compact revision they hold a put, where the
// others hold none: those have the same content at higher revisions. A compaction never removes a put at the compact
// revision itself. It is the newest revision of all when a server compacts there: where the log shows that there were
// newer ones, the revisions of the members moved apart in another way.
func reusedRevisions(in *Input) *Finding {
	if in.Diff == nil || in.Replay == nil || !onlyRevisionsDiffer(in.Diff) {
		return nil
	}
	f := Finding{Kind: KindRevisionReused, Severity: Critical, Class: ClassDataDivergence}
	compact, low, high := int64(0), int64(0), int64(1<<62)
	for i, m := range in.Members {
		if !in.Diff.TookPart("key", i) {
			continue
		}
		if compact == 0 {
			compact = m.CompactRevision()
		}
		if compact <= 0 || m.CompactRevision() != compact || compactedBelow(in.Replay.Members[i].Compacted, compact) {
			return nil
		}
		key := putAt(in.Context(), m, compact)
		if key == nil {
			high = min(high, in.Diff.Revs[i])
			continue
		}
		low = max(low, in.Diff.Revs[i])
		f.Members = append(f.Members, m.Label())
		f.Evidence = append(f.Evidence, Evidence{Member: m.Label(), File: m.DB.File, Bucket: "key", Key: key,
			Field: fmt.Sprintf("revision %d", compact), Observed: "a put",
			Expected: "nothing or a tombstone, as on the members with higher revisions", Show: showRev(m, compact)})
	}
	if len(f.Evidence) == 0 || low >= high || high == 1<<62 {
		return nil
	}
	f.At.Revision = &Rev{Main: compact}
	f.Title = fmt.Sprintf("revision %d, at which all compacted, was given to another write a second time", compact)
	f.Explanation = "the compaction removed the newest tombstones and the member started with a lower revision: its " +
		"revisions stay lower from then on, contents are the same"
	return &f
}

// compactedBelow reports whether a member had newer revisions when it compacted at one.
func compactedBelow(c *replay.Compacted, at int64) bool {
	return c != nil && c.To == at && c.Revision > at
}

// onlyRevisionsDiffer reports whether the keys of the members differ only in revision numbers.
func onlyRevisionsDiffer(d *diff.Result) bool {
	b := d.Find("key")
	return b != nil && b.Equal != release.Unknown && b.Differ > 0 && b.Differ == b.SameContent
}

// putAt returns the key of a put at a revision, nil when there is none.
func putAt(ctx context.Context, m *evidence.Member, rev int64) Bytes {
	for r, err := range m.DB.Handle.Query(ctx, dumpdb.Query{FromRev: rev, ToRev: rev}) {
		if err == nil && r.Err == nil && !r.Tombstone {
			return Bytes(bytes.Clone(r.KV.Key))
		}
	}
	return nil
}
