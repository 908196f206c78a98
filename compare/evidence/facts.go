package evidence

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// Facts are one member's facts in the form of the JSON contract.
type Facts struct {
	MemberID  dumplog.ID         `json:"memberID"`
	ClusterID dumplog.ID         `json:"clusterID"`
	Name      string             `json:"name"`
	NodeName  string             `json:"nodeName,omitempty"`
	WAL       *WALFacts          `json:"wal"`
	Snapshots []SnapFacts        `json:"snapshots"`
	SnapDBs   []dumplog.SnapDB   `json:"snapDBs,omitempty"`
	LeftOvers []dumplog.LeftOver `json:"leftOvers,omitempty"`
	// SnapOmitted is the number of files in the snap folder that SnapDBs, Snapshots and LeftOvers do not list.
	SnapOmitted    int             `json:"snapOmitted,omitempty"`
	DB             *DBFacts        `json:"db"`
	Auth           *AuthFacts      `json:"auth"`
	Membership     MembershipFacts `json:"membership"`
	Leases         []LeaseFacts    `json:"leases"`
	Alarms         []AlarmFacts    `json:"alarms"`
	ClusterVersion string          `json:"clusterVersion"`
	Downgrade      string          `json:"downgradeTarget,omitempty"`
	WroteBy        WroteBy         `json:"wroteBy"`
	Commit         uint64          `json:"commit"`
	AppliedIndex   uint64          `json:"appliedIndex"`
	Problems       []ProblemFacts  `json:"problems,omitempty"`
	Missing        []string        `json:"missing,omitempty"`
	// Omitted counts what the JSON form leaves out of long lists, by the name of the list; see MarshalJSON.
	Omitted map[string]int `json:"omitted,omitempty"`
}

// WroteBy is the etcd minor version that last wrote the source; Etcd is nil if nothing in the source shows it.
type WroteBy struct {
	Etcd    *string `json:"etcd"`
	Because string  `json:"because"`
}

// WALFacts are the facts of a log.
type WALFacts struct {
	Segments    []dumplog.Segment        `json:"segments"`
	Records     int                      `json:"records"`
	RecordTypes map[string]int           `json:"recordTypes"`
	FirstIndex  uint64                   `json:"firstIndex"`
	LastIndex   uint64                   `json:"lastIndex"`
	LastTerm    uint64                   `json:"lastTerm"`
	HardState   *dumplog.HardState       `json:"hardState"`
	Snapshots   []dumplog.SnapshotRecord `json:"snapshotRecords"`
	Start       dumplog.StartKind        `json:"start"`
	Overwritten int                      `json:"overwritten"`
	LeftOvers   []dumplog.LeftOver       `json:"leftOvers,omitempty"`
	// Damage are the first damaged places; DamageOmitted is the number of others.
	Damage        []DamageFacts `json:"damage"`
	DamageOmitted int           `json:"damageOmitted,omitempty"`
}

// SnapFacts are the facts of one .snap file.
type SnapFacts struct {
	File      string            `json:"file"`
	Term      uint64            `json:"term"`
	Index     uint64            `json:"index"`
	Size      int64             `json:"size"`
	ConfState dumplog.ConfState `json:"confState"`
	V2        *dumplog.V2Store  `json:"v2,omitempty"`
	Damage    *DamageFacts      `json:"damage"`
	// Unfinished is true for an empty or cut file of a killed server: Damage is nil then. See Member.UnfinishedSnap.
	Unfinished bool `json:"unfinished,omitempty"`
}

// maxDamageFacts is how many damaged places of a log or a database are listed; the others are counted.
const maxDamageFacts = 20

// maxSnapFacts is how many .snap files, .snap.db files and left-over files of a snap folder are listed, the newest
// first; the others are counted.
const maxSnapFacts = 200

// DamageFacts are one damaged place.
type DamageFacts struct {
	File     string `json:"file,omitempty"`
	Offset   int64  `json:"offset"`
	Length   int64  `json:"length,omitempty"`
	Page     uint64 `json:"page,omitempty"`
	Bucket   string `json:"bucket,omitempty"`
	Kind     string `json:"kind"`
	LostFrom uint64 `json:"lostFromIndex,omitempty"`
	LostTo   uint64 `json:"lostToIndex,omitempty"`
	// After is the last entry of a log before the damaged place.
	After  uint64 `json:"afterIndex,omitempty"`
	Detail string `json:"detail"`
	Server string `json:"server,omitempty"`
	// OnStart is how a server reacts to damage of a log when it starts.
	OnStart dumplog.StartEffect `json:"onStart,omitempty"`
}

// DBFacts are the facts of a database. Fields that need bucket key are nil if it cannot be read.
type DBFacts struct {
	File             string            `json:"file"`
	PageSize         int               `json:"pageSize"`
	Size             int64             `json:"size"`
	InUse            int64             `json:"inUse"`
	Metas            []dumpdb.Meta     `json:"metas"`
	Buckets          []string          `json:"buckets"`
	ConsistentIndex  *uint64           `json:"consistentIndex"`
	Term             *uint64           `json:"term"`
	StorageVersion   *string           `json:"storageVersion"`
	ConfState        *dumpdb.ConfState `json:"confState"`
	CurrentRevision  *int64            `json:"currentRevision"`
	CompactRevision  *int64            `json:"compactRevision"`
	ScheduledCompact *int64            `json:"scheduledCompactRevision"`
	FinishedCompact  *int64            `json:"finishedCompactRevision"`
	Keys             *int64            `json:"keys"`
	Revisions        *int64            `json:"revisions"`
	Tombstones       *int64            `json:"tombstones"`
	Leases           int               `json:"leases"`
	HashKV           *dumpdb.HashKV    `json:"hashKV"`
	Hashes           map[string]string `json:"hashes"`
	// Partial is true if bucket key can be read only in part: then Keys, Revisions and Tombstones count what can be
	// read. EndUnread is true if its newest records may be in what cannot be read: then CurrentRevision is that of the
	// newest one that can.
	Partial   bool `json:"partial,omitempty"`
	EndUnread bool `json:"endUnread,omitempty"`
	// Damage are the first damaged places; DamageOmitted is the number of others.
	Damage        []DamageFacts `json:"damage"`
	DamageOmitted int           `json:"damageOmitted,omitempty"`
	// Undecodable is how many rows of bucket key do not decode.
	Undecodable int `json:"undecodableRows,omitempty"`
}

// RevisionText is the current revision, with a question mark if it may be higher, "-" if it is not known.
func (d *DBFacts) RevisionText() string { return unsureText(d.CurrentRevision, d.EndUnread) }

// KeysText is the number of live keys, with a question mark if it is that of those that can be read, "-" if it is not
// known.
func (d *DBFacts) KeysText() string { return unsureText(d.Keys, d.Partial) }

func unsureText(n *int64, unsure bool) string {
	switch {
	case n == nil:
		return "-"
	case unsure:
		return strconv.FormatInt(*n, 10) + "?"
	}
	return strconv.FormatInt(*n, 10)
}

// AuthFacts are users with their roles, and roles with their permissions in words; no password hashes.
type AuthFacts struct {
	Enabled  bool                `json:"enabled"`
	Revision uint64              `json:"revision"`
	Users    map[string][]string `json:"users"`
	Roles    map[string][]string `json:"roles"`
}

// MembershipFacts are the member lists by place. Agree is nil if fewer than two places could be compared.
type MembershipFacts struct {
	Voters    []dumplog.ID    `json:"voters"`
	Learners  []dumplog.ID    `json:"learners"`
	Removed   []dumplog.ID    `json:"removed"`
	Members   []dumpdb.Member `json:"members"`
	V2        []dumplog.ID    `json:"v2"`
	ConfState []dumplog.ID    `json:"confState"`
	Agree     release.Answer  `json:"agree"`
	// PeerURLs are the newest known peer URLs by member, including removed members.
	PeerURLs map[dumplog.ID][]string `json:"-"`
}

// LeaseFacts are one lease; TTLs in seconds.
type LeaseFacts struct {
	ID           dumpdb.ID `json:"id"`
	TTL          int64     `json:"ttl"`
	RemainingTTL int64     `json:"remainingTTL,omitempty"`
}

// AlarmFacts are one raised alarm.
type AlarmFacts struct {
	MemberID dumpdb.ID `json:"memberID"`
	Alarm    string    `json:"alarm"`
}

// ProblemFacts are one part that could not be read.
type ProblemFacts struct {
	Part  string `json:"part"`
	File  string `json:"file"`
	Error string `json:"error"`
}

// AlarmName returns NOSPACE, CORRUPT or the number.
func AlarmName(t int32) string {
	switch t {
	case 1:
		return "NOSPACE"
	case 2:
		return "CORRUPT"
	}
	return fmt.Sprintf("alarm(%d)", t)
}

// Facts returns the member's facts for a report.
func (m *Member) Facts() Facts {
	f := Facts{MemberID: m.MemberID, ClusterID: m.ClusterID, Name: m.Label(), NodeName: m.NodeName,
		Snapshots: []SnapFacts{},
		Leases:    []LeaseFacts{}, Alarms: []AlarmFacts{}, Commit: m.Commit, AppliedIndex: m.AppliedMin,
		Missing: m.Source.Missing}
	f.WroteBy.Because = m.Version.Because
	if m.Version.Text != "" {
		f.WroteBy.Etcd = &m.Version.Text
	}
	for _, p := range m.Problems {
		f.Problems = append(f.Problems, ProblemFacts{Part: p.Part, File: p.File, Error: p.Err.Error()})
	}
	f.WAL = walFacts(m)
	if m.HasSnap() {
		newest := m.Snap.Files[max(0, len(m.Snap.Files)-maxSnapFacts):]
		for _, s := range newest {
			f.Snapshots = append(f.Snapshots, m.snapFacts(s))
		}
		f.SnapDBs, f.LeftOvers = m.Snap.SnapDBs[max(0, len(m.Snap.SnapDBs)-maxSnapFacts):],
			m.Snap.LeftOvers[:min(len(m.Snap.LeftOvers), maxSnapFacts)]
		f.SnapOmitted = len(m.Snap.Files) + len(m.Snap.SnapDBs) + len(m.Snap.LeftOvers) -
			len(newest) - len(f.SnapDBs) - len(f.LeftOvers)
	}
	if m.DB != nil {
		dbFacts(m, &f)
	}
	f.Membership = membershipFacts(m)
	return f
}

func walFacts(m *Member) *WALFacts {
	if !m.HasWAL() {
		return nil
	}
	s := &m.WAL.Summary
	f := &WALFacts{Segments: s.Segments, RecordTypes: map[string]int{}, FirstIndex: s.FirstIndex,
		LastIndex: s.LastIndex,
		LastTerm:  s.LastTerm, HardState: s.HardState, Snapshots: s.Snapshots, Start: s.Start,
		Overwritten: len(s.Overwrites),
		LeftOvers:   s.LeftOvers, Damage: []DamageFacts{}}
	for t, n := range s.Records {
		f.Records += n
		f.RecordTypes[t.String()] += n
	}
	f.AddDamage(s.Damage)
	return f
}

// AddDamage adds damaged places, up to the bound of the list.
func (f *WALFacts) AddDamage(places []*dumplog.DamageError) {
	shown := min(len(places), maxDamageFacts-len(f.Damage))
	for _, d := range places[:shown] {
		f.Damage = append(f.Damage, logDamage(d))
	}
	f.DamageOmitted += len(places) - shown
}

func logDamage(d *dumplog.DamageError) DamageFacts {
	return DamageFacts{File: d.Segment, Offset: d.Offset, Length: d.Len, Kind: string(d.Kind), LostFrom: d.LostFrom,
		LostTo: d.LostTo, After: d.After, Detail: d.Error(), Server: d.Server, OnStart: d.OnStart}
}

func (m *Member) snapFacts(s *dumplog.SnapFile) SnapFacts {
	f := SnapFacts{File: s.File, Term: s.Term, Index: s.Index, Size: s.Size, ConfState: s.ConfState, V2: s.V2,
		Unfinished: m.UnfinishedSnap(s)}
	if s.Damage != nil && !f.Unfinished {
		d := logDamage(s.Damage)
		f.Damage = &d
	}
	return f
}

func dbFacts(m *Member, f *Facts) {
	d := m.DB
	db := &DBFacts{File: d.File, Leases: len(d.Leases), HashKV: d.HashKV, Hashes: d.Hashes, Damage: []DamageFacts{}}
	f.DB = db
	shown := min(len(d.Damage), maxDamageFacts)
	db.DamageOmitted = len(d.Damage) - shown
	for _, e := range d.Damage[:shown] {
		db.Damage = append(db.Damage, DamageFacts{File: d.File, Offset: e.Offset, Page: e.Page, Bucket: e.Bucket,
			Kind: string(e.Kind), Detail: e.Error()})
	}
	if d.Handle == nil {
		db.Size = d.Size
		return
	}
	db.PageSize, db.Size, db.Metas = d.Handle.PageSize(), d.Handle.Size(), d.Handle.Metas()
	for _, b := range d.Buckets {
		db.Buckets = append(db.Buckets, b.Name)
	}
	if d.Pages != nil {
		db.InUse = int64(d.Pages.Reachable) * int64(db.PageSize)
	}
	db.ConsistentIndex, db.Term, db.ConfState = d.Meta.ConsistentIndex, d.Meta.Term, d.Meta.ConfState
	if d.Meta.StorageVersion != "" {
		db.StorageVersion = &d.Meta.StorageVersion
	}
	if r := d.Meta.ScheduledCompact; r != nil {
		db.ScheduledCompact = &r.Main
	}
	if r := d.Meta.FinishedCompact; r != nil {
		db.FinishedCompact = &r.Main
	}
	if m.RootUnreadable() {
		return // the content of the buckets is unknown, not empty
	}
	if kv := d.KV; kv != nil {
		db.CurrentRevision, db.CompactRevision = &kv.CurrentRev, &kv.CompactRev
		db.Keys, db.Revisions, db.Tombstones = &kv.LiveKeys, &kv.Revisions, &kv.Tombstones
		db.Partial, db.EndUnread = d.KVDamaged, d.endUnread()
		for _, v := range kv.Violations {
			if v.Rule == dumpdb.RuleUndecodable {
				db.Undecodable++
			}
		}
	}
	f.ClusterVersion = d.Cluster.Version
	if d.Cluster.DowngradeEnabled {
		f.Downgrade = d.Cluster.DowngradeTarget
	}
	f.Auth = authFacts(&d.Auth)
	for _, l := range d.Leases {
		f.Leases = append(f.Leases, LeaseFacts{ID: l.ID, TTL: l.TTL, RemainingTTL: l.RemainingTTL})
	}
	for _, a := range d.Alarms {
		f.Alarms = append(f.Alarms, AlarmFacts{MemberID: a.MemberID, Alarm: AlarmName(a.Type)})
	}
}

func authFacts(a *dumpdb.Auth) *AuthFacts {
	f := &AuthFacts{Enabled: a.Enabled, Revision: a.Revision, Users: map[string][]string{},
		Roles: map[string][]string{}}
	for _, u := range a.Users {
		f.Users[u.Name] = append([]string{}, u.Roles...)
	}
	for _, r := range a.Roles {
		perms := []string{}
		for _, p := range r.Perms {
			perms = append(perms, p.String())
		}
		f.Roles[r.Name] = perms
	}
	return f
}

func membershipFacts(m *Member) MembershipFacts {
	ms := &m.Membership
	f := MembershipFacts{Voters: orEmpty(ms.Voters), Learners: orEmpty(ms.Learners), Removed: orEmpty(ms.Removed),
		Members: []dumpdb.Member{}, V2: ms.V2, ConfState: ms.MetaConfState, PeerURLs: ms.PeerURLs}
	if m.DB != nil && m.DB.Members != nil {
		f.Members = m.DB.Members
	}
	if m.ListComparable() && len(ms.Bucket) > 0 {
		raft := append(slices.Clone(ms.Voters), ms.Learners...)
		slices.Sort(raft)
		f.Agree = release.AnswerOf(slices.Equal(raft, ms.Bucket))
	}
	return f
}

func orEmpty(ids []dumplog.ID) []dumplog.ID {
	if ids == nil {
		return []dumplog.ID{}
	}
	return ids
}
