package narrow

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
)

// Meta changes control values. Nil fields are left alone.
type Meta struct {
	// ConsistentIndex also sets meta/term to that of the entry, where the log shows it.
	ConsistentIndex *uint64
	AuthRevision    *uint64
	// StorageVersion is "3.6.0" or such; "" removes it.
	StorageVersion *string
	// MembersFromRaft makes buckets members and members_removed agree with raft's own member list, ConfStateFromRaft meta/confState.
	MembersFromRaft, ConfStateFromRaft bool
	// ClearAlarms are the alarms to clear.
	ClearAlarms []AlarmRef
	// DropV2 removes the v2 keys of users from the .snap files.
	DropV2 bool
}

// AlarmRef names alarms: those of one member, of one kind (1 NOSPACE, 2 CORRUPT) or of every kind (0).
type AlarmRef struct {
	Member dumplog.ID
	Kind   int32
}

// ParseAlarm reads MEMBER-ID or MEMBER-ID:NOSPACE.
func ParseAlarm(s string) (AlarmRef, error) {
	id, kind, named := strings.Cut(s, ":")
	m, err := dumplog.ParseID(id)
	if err != nil || m == 0 {
		return AlarmRef{}, fmt.Errorf("%q is no member ID", id)
	}
	a := AlarmRef{Member: m}
	switch {
	case !named:
	case strings.EqualFold(kind, "NOSPACE"):
		a.Kind = 1
	case strings.EqualFold(kind, "CORRUPT"):
		a.Kind = 2
	default:
		return a, fmt.Errorf("%q is no alarm: NOSPACE or CORRUPT", kind)
	}
	return a, nil
}

// Name is meta.
func (Meta) Name() string { return "meta" }

// changes are the parts of Meta, in the order in which they are made. A new one is one line.
var changes = []func(context.Context, *Meta, *work) ([]datadir.Edit, error){
	setIndex, setAuthRevision, setStorageVersion, setMembers, setConfState, clearAlarms, dropV2,
}

func (c Meta) apply(ctx context.Context, w *work) error {
	if w.parts.DB == "" || !w.source().HasDB() {
		return refusef("", "%s has no database that opens", w.report.Source)
	}
	var edits []datadir.Edit
	for _, change := range changes {
		e, err := change(ctx, &c, w)
		if err != nil {
			return err
		}
		edits = append(edits, e...)
	}
	if len(edits) == 0 {
		if len(w.snaps) > 0 {
			return nil
		}
		return refusef("", "nothing would change in %s", w.report.Source)
	}
	w.madeDB = true
	return w.out.CopyDB(ctx, w.dbPath(), w.parts.DB, edits...)
}

// setIndex moves the consistent index. Entries between the old and the new value are either never applied, or applied once more; the
// replay tells which of them have an effect, and whether the database shows it.
func setIndex(ctx context.Context, c *Meta, w *work) ([]datadir.Edit, error) {
	if c.ConsistentIndex == nil {
		return nil, nil
	}
	m, to := w.source(), *c.ConsistentIndex
	from := m.ConsistentIndex()
	if to == from {
		return nil, refusef("", "the consistent index is %d already", to)
	}
	if s := newestUsable(m); to < s {
		return nil, refusef("", "the newest raft snapshot is at %d: a server does not start on a database behind it", s)
	}
	if m.HasLog() && to > m.LastIndex() {
		return nil, refusef("", "the log ends at %d: entries up to %d would be skipped that are not written yet", m.LastIndex(), to)
	}
	edits := []datadir.Edit{datadir.SetConsistentIndex(to)}
	if t := termOf(w, to); t > 0 && m.DB.Meta.Term != nil {
		edits = append(edits, datadir.SetTerm(t))
		w.did("meta/term is set to %d, that of entry %d", t, to)
	}
	w.did("meta/consistent_index is set from %d to %d", from, to)
	return edits, w.judgeIndex(ctx, from, to)
}

func termOf(w *work, index uint64) uint64 {
	for _, m := range w.set.Members {
		if m.WAL != nil && m.WAL.Summary != nil {
			if t := m.WAL.Summary.TermAt(index); t > 0 {
				return t
			}
		}
	}
	return 0
}

// judgeIndex refuses when entries would be skipped whose effect is not there, or be applied again whose effect is.
func (w *work) judgeIndex(ctx context.Context, from, to uint64) error {
	low, high := min(from, to)+1, max(from, to)
	changing, seen := 0, uint64(0)
	var at span
	first := ""
	for _, m := range w.set.Members {
		if m.WAL == nil || m.WAL.Summary == nil || seen > 0 {
			continue
		}
		for e, err := range m.WAL.Log.Entries(ctx, m.WAL.Summary) {
			if err != nil || e.Overwritten || e.Index < low || e.Index > high {
				continue
			}
			seen++
			req, err := e.Decode()
			if err == nil && !changesState(req) {
				continue
			}
			at.to = e.Index
			if changing++; first == "" {
				at.from = e.Index
				first = fmt.Sprintf("%d/%d %s", e.Term, e.Index, req.Kind)
			}
		}
	}
	n := high - low + 1
	switch {
	case seen < n:
		return w.need(AcceptDivergence, "give the data dir, or a member whose log reaches that far, with --with", fmt.Sprintf("only %d of the %d entries between %d and %d can be looked at", seen, n, low, high))
	case changing == 0:
		w.note("nothing is changed by %s", entries(span{low, high}))
		return nil
	case to > from && !w.shown(ctx, at):
		w.givesUp("the effect of entries %d to %d, where the database does not hold it: they are never applied", low, high)
		return w.need(AcceptDivergence, "", fmt.Sprintf("of %s, %d change something, first %s; with the index raised they are never applied here", entries(span{low, high}), changing, first))
	case to < from && !w.absent(ctx, at):
		w.givesUp("equality with the other members: entries %d to %d are applied again", low, high)
		return w.need(AcceptDivergence, "", fmt.Sprintf("of %s, %d change something and the database shows it, first %s; with the index lowered they are applied twice", entries(span{low, high}), changing, first))
	}
	return nil
}

// changesState tells whether applying an entry can change the database.
func changesState(r *dumplog.Request) bool {
	switch r.Kind {
	case dumplog.KindEmpty, dumplog.KindRange, dumplog.KindAuthenticate, dumplog.KindAuthStatus, dumplog.KindAuthUserGet, dumplog.KindAuthUserList,
		dumplog.KindAuthRoleGet, dumplog.KindAuthRoleList, dumplog.KindV2, dumplog.KindClusterMemberAttrSet, dumplog.KindClusterVersionSet, dumplog.KindDowngradeVersionTest:
		return false
	}
	return true
}

// shown and absent ask the replay, which holds the log against the database: above the consistent index it notes effects that are there
// all the same (Ahead), below it those that are missing.
func (w *work) shown(ctx context.Context, s span) bool {
	r := w.replayed(ctx)
	return r != nil && r.Ahead != nil && r.Ahead.From <= s.from && r.Ahead.To >= s.to
}

func (w *work) absent(ctx context.Context, s span) bool {
	res, err := replay.Run(ctx, w.set.Members, replay.Options{})
	if err != nil || len(res.Members) == 0 || !res.Members[0].Checked || res.Members[0].From > s.from || res.Members[0].To < s.to {
		return false
	}
	missing := map[uint64]bool{}
	for _, e := range res.Events {
		if e.Outcomes[0].State == replay.Missing {
			missing[e.Index] = true
		}
	}
	for e, err := range w.source().WAL.Log.Entries(ctx, w.source().WAL.Summary) {
		if err != nil || e.Overwritten || e.Index < s.from || e.Index > s.to || missing[e.Index] {
			continue
		}
		if req, err := e.Decode(); err != nil || changesState(req) {
			return false
		}
	}
	return true
}

// replayed is the source's own part of a replay over all sources, nil when it could not be made.
func (w *work) replayed(ctx context.Context) *replay.MemberResult {
	res, err := replay.Run(ctx, w.set.Members, replay.Options{})
	if err != nil || len(res.Members) == 0 || !res.Members[0].Checked {
		return nil
	}
	return res.Members[0]
}

// setAuthRevision is held against what the log gives when every entry counts once, and against the other members.
func setAuthRevision(ctx context.Context, c *Meta, w *work) ([]datadir.Edit, error) {
	if c.AuthRevision == nil {
		return nil, nil
	}
	m, to := w.source(), *c.AuthRevision
	if to == m.DB.Auth.Revision && m.DB.Auth.HasRevision {
		return nil, refusef("", "the auth revision is %d already", to)
	}
	edits := []datadir.Edit{datadir.SetAuthRevision(to)}
	w.did("auth/authRevision is set from %d to %d", m.DB.Auth.Revision, to)
	if r := w.replayed(ctx); r != nil && r.AuthKnown {
		if r.AuthExpected == to {
			return edits, nil
		}
		return edits, w.need(AcceptDivergence, "", fmt.Sprintf("the log gives %d when every auth entry counts once, not %d", r.AuthExpected, to))
	}
	var others []string
	for _, p := range w.peers() {
		if p.HasDB() {
			others = append(others, fmt.Sprint(p.DB.Auth.Revision))
		}
	}
	if len(others) > 0 && !slices.ContainsFunc(others, func(s string) bool { return s != fmt.Sprint(to) }) {
		w.note("the other members have %d too", to)
		return edits, nil
	}
	return edits, w.need(AcceptDivergence, "name other members with --with", "the log does not reach back far enough to tell the auth revision, and the other members named do not agree on "+fmt.Sprint(to))
}

// setStorageVersion follows what the server checks at start (server/storage/schema/schema.go, 3.6+).
func setStorageVersion(_ context.Context, c *Meta, w *work) ([]datadir.Edit, error) {
	if c.StorageVersion == nil {
		return nil, nil
	}
	m, to := w.source(), *c.StorageVersion
	was := m.DB.Meta.StorageVersion
	if to == was {
		return nil, refusef("", "the storage version is %q already", to)
	}
	edits := []datadir.Edit{datadir.SetStorageVersion(to)}
	w.did("meta/storageVersion is set from %q to %q", was, to)
	minor := minorOf(to)
	switch {
	case to != "" && (minor < 6 || minor > 8):
		return nil, refusef("3.6.0, 3.7.0, 3.8.0 or none", "no server writes storage version %q", to)
	case to != "" && (m.DB.Meta.Term == nil || m.DB.Meta.ConfState == nil):
		return nil, refusef("start the member with etcd 3.5 first", "without meta/term and meta/confState no server takes the database for %s", to)
	case to != "" && minor > minorOf(m.DB.Cluster.Version) && m.DB.Cluster.Version != "":
		return nil, refusef("servers raise it themselves once all members run the newer line", "the cluster runs version %s, and its servers do not start on storage version %s", m.DB.Cluster.Version, to)
	case minorOf(m.DB.Cluster.Version) > max(minor, 5):
		return edits, w.need(AcceptDivergence, "", fmt.Sprintf("the cluster runs version %s: servers of an older line do not know everything it wrote", m.DB.Cluster.Version))
	}
	return edits, nil
}

func minorOf(version string) (minor int) {
	_, _ = fmt.Sscanf(version, "3.%d", &minor)
	return minor
}

// setMembers and setConfState take raft's own list, which decides quorums.
func setMembers(_ context.Context, c *Meta, w *work) ([]datadir.Edit, error) {
	if !c.MembersFromRaft {
		return nil, nil
	}
	v, err := w.raftView()
	if err != nil {
		return nil, err
	}
	w.did("buckets members and members_removed carry raft's own list: %d members, %d removed", len(v.Members), len(v.Removed))
	return []datadir.Edit{datadir.SetMembers(v.Members, v.Removed)}, nil
}

func setConfState(_ context.Context, c *Meta, w *work) ([]datadir.Edit, error) {
	if !c.ConfStateFromRaft {
		return nil, nil
	}
	v, err := w.raftView()
	if err != nil {
		return nil, err
	}
	w.did("meta/confState carries raft's own list: %d voters, %d learners", len(v.Voters), len(v.Learners))
	return []datadir.Edit{datadir.SetConfState(v.Voters, v.Learners)}, nil
}

func (w *work) raftView() (*datadir.View, error) {
	m := w.source()
	if !m.Membership.RaftKnown {
		return nil, refusef("give the whole data dir", "%s shows no ConfState: raft's own list is not known", m.Label())
	}
	v, err := datadir.ViewOf(m)
	if err != nil {
		return nil, err
	}
	for _, p := range w.peers() {
		if p.Membership.RaftKnown && p.Commit >= m.Commit && !sameIDs(p.Membership.Voters, m.Membership.Voters) {
			return v, w.need(AcceptDivergence, "", fmt.Sprintf("%s, which has come as far, knows other voters", p.Label()))
		}
	}
	return v, nil
}

func sameIDs(a, b []dumplog.ID) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// clearAlarms: an alarm acts on every entry that is applied, so a member that lacks one that others have answers differently.
func clearAlarms(_ context.Context, c *Meta, w *work) ([]datadir.Edit, error) {
	var edits []datadir.Edit
	m := w.source()
	for _, a := range c.ClearAlarms {
		fits := func(x dumpdb.Alarm) bool {
			return dumplog.ID(x.MemberID) == a.Member && (a.Kind == 0 || x.Type == a.Kind)
		}
		if !slices.ContainsFunc(m.DB.Alarms, fits) {
			return nil, refusef("see etcd-medic dumpdb SOURCE alarm", "no such alarm of member %s", a.Member)
		}
		edits = append(edits, datadir.ClearAlarm(uint64(a.Member), a.Kind))
		w.did("the alarm of member %s is cleared", a.Member)
		w.givesUp("the alarm of member %s: writes it held back are applied again", a.Member)
		if err := w.alarmOthers(a, fits); err != nil {
			return nil, err
		}
	}
	return edits, nil
}

// alarmOthers wants every other voter to be seen without the alarm.
func (w *work) alarmOthers(a AlarmRef, fits func(dumpdb.Alarm) bool) error {
	m := w.source()
	clean := map[dumplog.ID]bool{m.MemberID: true}
	for _, p := range w.peers() {
		if !p.HasDB() {
			continue
		}
		if slices.ContainsFunc(p.DB.Alarms, fits) {
			return w.need(AcceptDivergence, "while the cluster runs: etcdctl alarm disarm; else clear it in the dirs of all members", fmt.Sprintf("%s has the alarm of member %s too: the members would treat the same entries differently", p.Label(), a.Member))
		}
		clean[p.MemberID] = true
	}
	voters := m.Membership.Voters
	if !m.Membership.RaftKnown {
		voters = m.Membership.Bucket
	}
	for _, id := range voters {
		if !clean[id] {
			return w.need(AcceptDivergence, "name the other members with --with; while the cluster runs: etcdctl alarm disarm", fmt.Sprintf("member %s may have the alarm too: the members would treat the same entries differently", id))
		}
	}
	return nil
}
