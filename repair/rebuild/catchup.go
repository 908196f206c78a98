package rebuild

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/etcd-medic/etcd-medic/compare/boot"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/majority"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/release"
)

// CatchUpOptions say which database to catch up.
type CatchUpOptions struct {
	Source evidence.Spec
	// Logs are further members, whose logs prove more entries committed.
	Logs []evidence.Spec
	// Revision, if set, is the wanted revision: a database that has reached it is used unchanged.
	Revision int64
	// AsIs uses the database unchanged in any case, and reports what it lacks.
	AsIs     string
	Access   evidence.Access
	Progress func(what string)
}

// CaughtUp is the database of a source with the committed entries of its log executed. Servers write their database
// some time after they acknowledge. If they are killed before, the data is only in the log.
type CaughtUp struct {
	// DB is the path of the database to read: the source's own if nothing had to be executed.
	DB string `json:"-"`
	// Parts are the parts of the source.
	Parts *evidence.Parts `json:"-"`
	// ConsistentIndex is that of the source's database, Commit the last entry proven committed. ByMajority says how
	// that is known of the last ones, if no source shows it.
	ConsistentIndex uint64 `json:"consistentIndex"`
	Commit          uint64 `json:"commit"`
	ByMajority      string `json:"byMajority,omitempty"`
	// Executed counts the executed committed entries above the consistent index. Etcd is the version whose rules were
	// used.
	Executed int64  `json:"executed"`
	Etcd     string `json:"etcd,omitempty"`
	// Missing counts the committed entries that may have an effect and are missing in the database; Why is the reason.
	Missing int64  `json:"missing"`
	Why     string `json:"why,omitempty"`
	// Unproven counts the entries above Commit that may have an effect. They may have been acknowledged, but no source
	// proves them committed, so they are not executed.
	Unproven int64 `json:"unproven"`
	// EndUnknown says why the logs do not show everything that a data dir's server has acknowledged: there is no log,
	// or it has lost its end. Empty where they do.
	EndUnknown string `json:"endUnknown,omitempty"`
	// FromStart is true if there is no database that opens and the source's log is whole from the first entry of a
	// cluster that began empty: a database can be rebuilt from it.
	FromStart bool `json:"fromStart,omitempty"`
	// Doubtful counts executed entries whose outcome depends on the patch release.
	Doubtful int64 `json:"doubtful"`

	scratch string
}

// Whole reports whether the database has everything that the log shows.
func (c *CaughtUp) Whole() bool {
	return c.Missing == 0 && c.Unproven == 0 && c.Doubtful == 0 && c.EndUnknown == ""
}

// Says describes what was executed and what is missing, in sentences.
func (c *CaughtUp) Says() (out []string) {
	if c.Executed > 0 {
		out = append(out, fmt.Sprintf("%d committed entries above the database's consistent index %d were executed "+
			"by the rules of etcd %s, up to entry %d", c.Executed, c.ConsistentIndex, c.Etcd, c.Commit))
	}
	if c.ByMajority != "" {
		out = append(out, c.ByMajority)
	}
	if c.FromStart {
		out = append(out, "the log of the source is whole from the first entry on: a backup can be made of it")
	}
	if c.Missing > 0 {
		out = append(out, fmt.Sprintf("missing: %d committed entries above the database's consistent index %d, up to "+
			"entry %d: %s", c.Missing, c.ConsistentIndex, c.Commit, c.Why))
	}
	if c.Unproven > 0 {
		out = append(out, fmt.Sprintf("missing: %d entries at the end of the log, above entry %d, that may have been "+
			"acknowledged: this source does not prove them committed; name other members with --log", c.Unproven,
			c.Commit))
	}
	if c.EndUnknown != "" {
		out = append(out, fmt.Sprintf("missing: an unknown number of entries above entry %d, which the server may "+
			"have acknowledged: %s; name other members with --log", max(c.ConsistentIndex, c.Commit), c.EndUnknown))
	}
	if c.Doubtful > 0 {
		out = append(out, fmt.Sprintf("the outcome of %d of them depends on the patch release of the server",
			c.Doubtful))
	}
	return out
}

// Close removes the scratch.
func (c *CaughtUp) Close() error {
	err := c.Parts.Close()
	if c.scratch != "" {
		err = errors.Join(err, os.RemoveAll(c.scratch))
	}
	return err
}

// CatchUp executes the committed entries of a source's log above its database, in scratch. It counts the entries that
// cannot be executed.
func CatchUp(ctx context.Context, o CatchUpOptions) (*CaughtUp, error) {
	parts, err := evidence.LocateWith(ctx, o.Source, o.Access)
	if err != nil {
		return nil, err
	}
	c := &CaughtUp{Parts: parts, DB: parts.DB}
	if parts.DB == "" || parts.WAL == "" && parts.Kind != evidence.KindDataDir {
		return c, nil
	}
	if err := c.run(ctx, &o); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *CaughtUp) run(ctx context.Context, o *CatchUpOptions) error {
	src := o.Source
	if member := filepath.Dir(c.Parts.WAL); c.Parts.WAL != "" && member == filepath.Dir(filepath.Dir(c.Parts.DB)) {
		src = evidence.Spec{Name: c.Parts.Name, Where: member} // for an archive the unpacked one
	}
	set, err := evidence.Open(ctx, append([]evidence.Spec{src}, o.Logs...),
		evidence.Options{Access: o.Access, Progress: o.Progress})
	if err != nil {
		return err
	}
	defer func() { _ = set.Close() }()
	for _, f := range set.Failed {
		return f.Err
	}
	return errors.Join(c.from(ctx, o, src, set), set.Unchanged(ctx))
}

// from reads the opened source, the first of the set, with the logs of the other members.
func (c *CaughtUp) from(ctx context.Context, o *CatchUpOptions, src evidence.Spec, set *evidence.Set) error {
	m := set.Members[0]
	if !m.HasDB() {
		c.FromStart = m.LogFromStart() && len(m.WAL.Summary.Damage) == 0
		return nil
	}
	c.ConsistentIndex = m.ConsistentIndex()
	if err := c.committed(ctx, set.Members); err != nil {
		return err
	}
	if rev, err := m.DB.Handle.CurrentRev(); err == nil && o.Revision > 0 && o.Revision <= rev {
		return nil // later entries do not change it
	}
	c.EndUnknown = endUnknown(set.Members)
	if !m.HasLog() && len(o.Logs) == 0 {
		return nil
	}
	t, err := c.above(ctx, logsOf(set.Members), m.Version.Release())
	if err != nil {
		return err
	}
	c.Unproven, c.Missing = t.open, t.reachable+t.beyond
	if t.beyond > 0 {
		c.Why = fmt.Sprintf("the log lacks entry %d", t.reach+1)
	}
	if o.AsIs != "" && c.Missing > 0 {
		c.Why = o.AsIs
		return nil
	}
	if t.reachable == 0 {
		return nil
	}
	base, logs := src, o.Logs
	if neverCommitted(m) {
		base, logs = evidence.Spec{}, append([]evidence.Spec{src}, o.Logs...)
	}
	return c.execute(ctx, o, base, logs, t, m.Version.Release())
}

// committed works out the last entry that is proven committed.
func (c *CaughtUp) committed(ctx context.Context, members []*evidence.Member) error {
	for _, x := range members {
		if x.HasWAL() && sameCluster(members[0], x) {
			c.Commit = max(c.Commit, provenBy(x), loggedCommit(x))
		}
	}
	logs := logsOf(members)
	if len(logs) == 0 {
		return nil
	}
	by, err := executable(ctx, majority.Find(logs[0].ClusterID, members), logs, c.Commit)
	if by != nil {
		c.ByMajority, c.Commit = by.Says(c.Commit+1), by.Index
	}
	return err
}

// logsOf are the logs that may be of the cluster of the first member.
func logsOf(members []*evidence.Member) (logs []*evidence.Member) {
	for _, m := range members {
		if m.HasLog() && sameCluster(members[0], m) {
			logs = append(logs, m)
		}
	}
	return logs
}

// neverCommitted reports whether a new server was ended before it wrote anything but empty buckets to its database,
// and its log reaches back to the first entry of the cluster.
func neverCommitted(m *evidence.Member) bool {
	d := m.DB
	rows := len(d.Members) + len(d.Removed) + len(d.Leases) + len(d.Alarms) + len(d.Auth.Users) + len(d.Auth.Roles)
	rev, err := d.Handle.CurrentRev()
	return m.LogFromStart() && d.Meta.ConsistentIndex == nil && len(d.Damage) == 0 && !d.KVDamaged && rows == 0 &&
		err == nil && rev == 1
}

// sameCluster reports whether a log may be of the cluster of a source. Without a log the source does not show its
// cluster ID, and rebuilding proves whether database and log belong together.
func sameCluster(source, x *evidence.Member) bool {
	return x == source || x.ClusterID == source.ClusterID || source.ClusterID == 0
}

// endUnknown says why the logs of members do not show all that the first one has acknowledged, "" where they do. Either
// its own log has its end, or the whole logs of a majority of voters have everything that was committed.
func endUnknown(members []*evidence.Member) string {
	m := members[0]
	if m.Source.Kind != evidence.KindDataDir {
		return ""
	}
	whole := map[dumplog.ID]bool{}
	newest := m // of those that show who votes
	for i, x := range members {
		f := x.Facts()
		if i > 0 && !sameCluster(m, x) || !boot.EndsWhole(&f) {
			continue
		}
		if i == 0 {
			return ""
		}
		whole[x.MemberID] = true
		if x.Commit > newest.Commit || len(newest.Membership.Voters) == 0 {
			newest = x
		}
	}
	n := 0
	for _, v := range newest.Membership.Voters {
		if whole[v] {
			n++
		}
	}
	if n > len(newest.Membership.Voters)/2 {
		return ""
	}
	if !m.HasLog() {
		return "the data dir has no log"
	}
	return "the end of its log is lost"
}

// execute rebuilds in scratch. A refusal is a reason why entries are missing.
func (c *CaughtUp) execute(ctx context.Context, o *CatchUpOptions, base evidence.Spec, logs []evidence.Spec, t tail,
	v release.Version) (err error) {
	if c.scratch, err = os.MkdirTemp("", "etcd-medic-catchup-"); err != nil {
		return err
	}
	out := filepath.Join(c.scratch, "db")
	res, err := Run(ctx, Options{Base: base, Logs: logs, To: Target{Index: t.reach},
		Out: filepath.Join(c.scratch, "backup"), DBOut: out,
		Version: v, Access: o.Access, Progress: o.Progress})
	var refused interface{ Refused() bool }
	switch {
	case err == nil:
		c.DB, c.Executed, c.Doubtful, c.Etcd, c.Missing = out, t.reachable, res.DoubtfulCount, res.Etcd, t.beyond
		return os.Remove(filepath.Join(c.scratch, "backup"))
	case errors.As(err, &refused) && refused.Refused():
		c.Why = refusal.Reason(err)
		return nil
	}
	return err
}

// tail is the part of the logs above the consistent index. reach is the last committed index without a gap before it.
// Entries that may have an effect are counted up to reach, beyond it (including the indexes that no log has), and above
// the proven commit index.
type tail struct {
	reach                   uint64
	reachable, beyond, open int64
}

// above counts these entries. Up to 3.4 only key writes move the consistent index, so later entries without one may be
// in the database.
func (c *CaughtUp) above(ctx context.Context, logs []*evidence.Member, v release.Version) (t tail, err error) {
	small := v.Has(release.IndexWithEveryEntry).Certain()
	t.reach = c.ConsistentIndex
	last := t.reach
	for e, err := range replay.Log(ctx, logs) {
		if err != nil {
			return t, err
		}
		if e.Index <= c.ConsistentIndex {
			continue
		}
		matters := e.Err != nil || mayMatter(e.Req, small)
		if e.Index <= c.Commit {
			t.beyond += int64(e.Index - last - 1)
			last = e.Index
		}
		switch {
		case e.Index > c.Commit && matters:
			t.open++
		case e.Index > c.Commit:
		case e.Index == t.reach+1:
			t.reach++
			if matters {
				t.reachable++
			}
		case matters:
			t.beyond++
		}
	}
	if c.Commit > last {
		t.beyond += int64(c.Commit - last)
	}
	return t, nil
}

// mayMatter reports whether a request may change what an extract or a restore contains, as opposed to requests that
// only publish attributes.
func mayMatter(r *dumplog.Request, small bool) bool {
	if replay.WritesKeys(r.Kind) {
		return true
	}
	if !small || r.LeaseCheckpoint != nil {
		return false
	}
	for _, b := range replay.TouchedBuckets(r) {
		switch b {
		case "members", "members_removed", "cluster", "meta", "alarm":
		default:
			return true
		}
	}
	return false
}

// provenBy returns the last entry that a member proves committed. In a cluster of one member, the whole log is
// committed, although its last HardState may not say so yet.
func provenBy(m *evidence.Member) uint64 {
	if s := m.Membership; s.RaftKnown && len(s.Voters) == 1 && s.Voters[0] == m.MemberID && m.HasWAL() {
		for i := range m.WAL.Conf {
			if m.WAL.Conf[i].Index > m.Commit {
				return m.Commit // a member may be about to be added
			}
		}
		return max(m.Commit, m.LastIndex())
	}
	return m.Commit
}

// loggedCommit returns the highest commit index in a HardState of the log, even if the log has lost the entry.
func loggedCommit(m *evidence.Member) uint64 {
	return m.WAL.Summary.MaxCommit
}
