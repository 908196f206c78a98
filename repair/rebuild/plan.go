package rebuild

import (
	"context"
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/majority"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/release"
)

// plan surveys the logs, and refuses foreseeable failures before anything is written.
func (b *builder) plan(ctx context.Context) error {
	b.say("reading the logs")
	if err := b.survey(ctx); err != nil {
		return err
	}
	b.settleVersion()
	b.res.From = b.from
	sv := b.sv
	if sv.baseTerm != 0 && b.from.Term != 0 && sv.baseTerm != b.from.Term {
		return refuse("the base is at entry %d/%d, but the log has %d/%d: they are of different histories",
			b.from.Term, b.from.Index, sv.baseTerm, b.from.Index)
	}
	if b.base != nil && sv.last < b.from.Index {
		return refuse("the logs end at entry %d, before the base's index %d: the base cannot be continued with them; "+
			"a restore "+
			"begins a new log, and then the restored data dir is the base to use", sv.last, b.from.Index)
	}
	if err := b.committed(ctx); err != nil {
		return err
	}
	if err := b.target(); err != nil {
		return err
	}
	if sv.parted > 0 && (b.stop == 0 || b.stop >= sv.parted) {
		return refuse("the logs hold two histories: entry %d does not continue entry %d of the other logs. Give the "+
			"logs of one history (--log), or end before it (--to)", sv.parted, sv.parted-1)
	}
	if !b.version.Has(release.IndexWithAuth).Certain() && len(sv.unsaved) > 0 && b.base != nil {
		b.res.note("etcd %s stores the consistent index with key writes only, or may do so: the auth entries %v may "+
			"have been in the base already, then the auth revision is too high", b.version, clipped(sv.unsaved))
	}
	for _, i := range b.o.Skip {
		if i <= b.from.Index || i > max(b.stop, b.commit) {
			return refuse("entry %d cannot be skipped: it is not between the base (at %d) and the end (%d)",
				i, b.from.Index, max(b.stop, b.commit))
		}
	}
	if b.stop == 0 {
		return nil
	}
	return b.gapUpTo(b.stop)
}

// committed works out the last entry that is committed and that the logs have.
func (b *builder) committed(ctx context.Context) error {
	b.commit = max(b.commit, min(b.proven, b.sv.last))
	b.known = b.commit
	c := b.o.Majority
	if c == nil {
		c = majority.Find(b.logs[0].ClusterID, b.set.Members)
	}
	c, err := executable(ctx, c, b.logs, b.known)
	if c != nil {
		b.majority, b.commit = c, c.Index
	}
	return err
}

// executable returns what a majority shows to be committed above a known index, as far as it can be executed; nil for
// nothing. The logs must have all entries above the known ones, and each as all holders have it.
func executable(ctx context.Context, c *majority.Commit, logs []*evidence.Member, known uint64) (*majority.Commit,
	error) {
	if c == nil || c.Index <= known {
		return nil, nil
	}
	end := known
	for e, err := range replay.LogFrom(ctx, logs, known+1) {
		if err != nil {
			return nil, err
		}
		if e.Index > c.Index || e.Index != end+1 || !asHeld(c, logs, &e) {
			break
		}
		end = e.Index
	}
	if end == known {
		return nil, nil
	}
	return c.UpTo(end), nil
}

// asHeld reports whether an entry of the merged logs can be executed, and is that of all holders whose logs have its
// index.
func asHeld(c *majority.Commit, logs []*evidence.Member, e *replay.Entry) bool {
	if e.Err != nil || e.Req.Kind == dumplog.KindUnknown || e.Req.ConfChangeV2 != nil {
		return false
	}
	for at, m := range logs {
		if c.HeldBy(m.MemberID) && m.WAL.Holds(e.Index) && !slices.Contains(e.Holders, at) {
			return false
		}
	}
	return true
}

func clipped(list []uint64) []uint64 { return list[:min(len(list), 20)] }

// gapUpTo refuses if an index after the base and up to end is in no log.
func (b *builder) gapUpTo(end uint64) error {
	var missing []Gap
	for _, g := range b.sv.gaps {
		if g.From <= end {
			missing = append(missing, Gap{g.From, min(g.To, end)})
		}
	}
	if last := max(b.sv.last, b.from.Index); last < end {
		missing = append(missing, Gap{last + 1, end})
	}
	if len(missing) == 0 {
		return nil
	}
	return refusal.New("", "%w", &MissingError{Missing: missing, what: fmt.Sprintf("the logs (%d to %d) do not lead "+
		"from the base at %d to %d without a gap", b.sv.first, b.sv.last, b.from.Index, end)})
}

// target computes the last index to execute, if that is possible before executing.
func (b *builder) target() error {
	t := b.o.To
	switch {
	case t.Index > 0:
		if t.Index < b.from.Index {
			return refuse("the base is already at index %d, above index %d; use an older base", b.from.Index,
				t.Index)
		}
		if t.Index > b.commit {
			return refuse("entry %d is not proven committed: the sources prove entries up to %d", t.Index, b.commit)
		}
		b.stop = t.Index
	case t.Revision > 0:
		if t.Revision < b.from.Revision {
			return refuse("the base is already at revision %d, above revision %d; use an older base", b.from.Revision,
				t.Revision)
		}
	case t.Before != nil:
	case t.Last:
		b.stop = b.commit
	default:
		return b.untilTime()
	}
	return nil
}

// untilTime stops before the first entry that was certainly proposed after the time. Times in a log are lower bounds.
// If no later one follows, it is unknown whether the last entries are before or after the time.
func (b *builder) untilTime() error {
	before, after := b.sv.times.Around()
	at := b.o.To.Time.UTC().Format(stamp)
	switch {
	case before == nil && after == nil:
		return refuse("the logs contain no time")
	case after == nil:
		return refuse("no entry shows a time after %s (the last one: %s), so its place among the entries from %d "+
			"on is unknown; use index=N (etcd-medic dumplog shows entries and times) or last",
			at, marked(before), before.Index)
	case after.Index-1 < b.from.Index:
		return refuse("the base is at index %d, which is later than the requested time: %s", b.from.Index,
			marked(after))
	}
	b.stop = min(b.commit, after.Index-1)
	switch {
	case before == nil:
		b.res.note("the first time in the log is after the requested time: %s", marked(after))
	case before.Index >= b.stop:
		b.res.note("%s; %s", marked(before), marked(after))
	default:
		b.res.note("%s; %s. The %d entries between them carry no time, or one that only bounds theirs from below: "+
			"they were executed, and may be on either side of %s; "+
			"index=%d leaves them out", marked(before), marked(after), b.stop-before.Index, at, before.Index)
	}
	return nil
}

func marked(m *dumplog.TimeMark) string {
	return fmt.Sprintf("entry %d was proposed at %s or later (%s)", m.Index, m.Time.UTC().Format(stamp), m.Source)
}

const stamp = "2006-01-02T15:04:05.000Z"
