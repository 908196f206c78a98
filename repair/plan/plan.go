package plan

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/cause"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
	"github.com/etcd-medic/etcd-medic/shell"
)

// SchemaVersion is the version of the plan file. It rises when an older program would misread a plan, or this one an
// older plan.
const SchemaVersion = 2

// Mode is a way to repair a cluster.
type Mode string

// The modes. Apply knows MendFiles, Live, Clone, Reseed and Rebuild; the others are done by hand, or not at all.
const (
	// Live changes the running cluster through its client API: move the leader, then remove and add one member at a
	// time.
	Live Mode = "live"
	// Clone writes new data dirs for all members from the best member's database, offline; member and cluster IDs stay.
	Clone Mode = "clone"
	// Reseed runs the live steps on copies in a sandbox and publishes the resulting data dirs.
	Reseed Mode = "reseed"
	// ForceNewCluster starts the best member alone with --force-new-cluster and adds the others to it.
	ForceNewCluster Mode = "force-new-cluster"
	// MendFiles mends damaged data dirs from their own files or with the help of other members; nothing is lost.
	MendFiles Mode = "mend"
	// Rebuild makes the database from a backup and the members' logs, and writes new data dirs for all members with it;
	// IDs stay.
	Rebuild Mode = "rebuild"
	// Restore builds a new cluster from a backup: no data dir can be used.
	Restore Mode = "restore"
	// RehearseOnly plans may be tried, not applied: the evidence does not suffice for more.
	RehearseOnly Mode = "rehearse-only"
	// LeaveAlone is for sets that need no repair; no plan is made then.
	LeaveAlone Mode = "leave-alone"
)

// Plan is the document that repair plan writes. It is a function of the sources and the flags alone: no clock, no
// absolute path.
type Plan struct {
	SchemaVersion int          `json:"schemaVersion"`
	Tool          compare.Tool `json:"tool"`
	// Digest is the sha256 of the plan without this field. A plan that was edited is refused: make a new one with other
	// flags.
	Digest string `json:"digest"`
	// Inputs are the sources as the user named them, WALDirs the values of --wal-dir.
	Inputs  []Input  `json:"inputs"`
	Sources []Source `json:"sources"`
	Verdict Verdict  `json:"verdict"`
	// Mode is the recommended procedure, Why the reason for it.
	Mode Mode   `json:"mode"`
	Why  string `json:"why"`
	// Tries is the way that a rehearsal tries where the mode is RehearseOnly. Missing is what a plan lacks to be
	// applied, or what to look for before a restore; nil if it lacks no data dir.
	Tries   Mode     `json:"tries,omitempty"`
	Missing *Missing `json:"missing,omitempty"`
	Best    Choice   `json:"best"`
	Lost    Lost     `json:"lost"`
	// Cluster is what the best member knows about its cluster.
	Cluster Cluster  `json:"cluster"`
	Members []Member `json:"members"`
	// Mends is the surgery that was tried on copies of damaged data dirs.
	Mends []Mend `json:"mends,omitempty"`
	// Rebuilt is the database that was made from logs, where no data dir is usable; nil else.
	Rebuilt *Rebuilt `json:"rebuilt,omitempty"`
	// Cautions are what a person must know before the first step.
	Cautions []string `json:"cautions"`
	// Ways are all procedures, the recommended one first. One that is not possible says why and has no steps.
	Ways []Way `json:"ways"`
}

// Input is one source argument.
type Input struct {
	Name   string `json:"name,omitempty"`
	Where  string `json:"where"`
	WALDir string `json:"walDir,omitempty"`
}

// Source is a source that the plan is bound to.
type Source struct {
	Name   string        `json:"name"`
	Kind   evidence.Kind `json:"kind"`
	Files  int           `json:"files"`
	Bytes  int64         `json:"bytes"`
	SHA256 string        `json:"sha256"`
}

// Verdict is the diagnosis in short.
type Verdict struct {
	Class     check.Class     `json:"class"`
	Cause     cause.ID        `json:"cause,omitempty"`
	Certainty cause.Certainty `json:"certainty,omitempty"`
	Summary   string          `json:"summary"`
	// Problem is Summary without the best members, "" if they are not part of it.
	Problem string `json:"problem,omitempty"`
}

// Choice is the member whose content is kept.
type Choice struct {
	Name string     `json:"name"`
	ID   dumplog.ID `json:"id"`
	// By is "content" or "operator" (--best).
	By  string `json:"by"`
	Why string `json:"why"`
	// Equals are other members with the same standing.
	Equals []string `json:"equals,omitempty"`
	// AppliedIndex and Revision are those of the best database, HashKV its hash of all keys at that revision.
	AppliedIndex uint64 `json:"appliedIndex"`
	Revision     int64  `json:"revision"`
	Compact      int64  `json:"compactRevision"`
	HashKV       uint32 `json:"hashKV"`
	AuthRevision uint64 `json:"authRevision"`
	// Known are checks that find something in this member alone. The result still has it, and the proof accepts it.
	Known []check.ID `json:"known,omitempty"`
	// For is the part of Why that speaks for this member, without its name and what speaks against others; "" if it is
	// all of Why.
	For string `json:"for,omitempty"`
}

// Lost is what is lost by keeping the best member's content.
type Lost struct {
	CommittedEntries int                 `json:"committedEntries"`
	Keys             int                 `json:"keys"`
	Entries          []compare.LostEntry `json:"entries,omitempty"`
	// AfterEnd are those of the committed entries that come after the end of what is kept: a backup, the data dir of a
	// removed member, or content that was made for the plan.
	AfterEnd int `json:"afterEnd,omitempty"`
	// Parted are those of the committed entries that the log of another member holds, from where the logs part.
	Parted int `json:"parted,omitempty"`
	// AfterBackup is true if a backup is restored that is not among the sources. How much came after it is not known.
	AfterBackup bool `json:"afterBackup,omitempty"`
	// Others are sources with another history than the kept one, whose content is given up.
	Others []string `json:"others,omitempty"`
	// Awaited are committed entries that the kept member first gets from the others while the cluster runs. A way in
	// which it does not get them is not possible, or counts them as lost.
	Awaited int `json:"awaited,omitempty"`
	// Records are records of the kept member that are proven wrong: their number and the first 100. Mend is the
	// command that brings the right ones back in a new data dir, "" where no source holds them, and MendArgs the same
	// as a list of arguments. Mended says what the command did to a copy, or why it does not work.
	Records  compare.LostRecords `json:"records,omitzero"`
	Mend     string              `json:"mend,omitempty"`
	MendArgs shell.Command       `json:"mendArgs,omitzero"`
	Mended   string              `json:"mended,omitempty"`
	// Unproven says why it is not proven that nothing more is lost; empty where it is.
	Unproven []string `json:"unproven,omitempty"`
	// Open is what lost members may have committed in addition, nil if every committed entry is in the log of a source.
	Open *OpenEnd `json:"open,omitempty"`
	// Save are the commands that write what is lost to files, to be run before the first step.
	Save []string `json:"save,omitempty"`
	// SaveArgs are the same commands as lists of arguments.
	SaveArgs []shell.Command `json:"saveArgs,omitempty"`
}

// Cluster is the cluster to repair.
type Cluster struct {
	ID      dumplog.ID `json:"id"`
	Version string     `json:"version"`
	// Storage is the storage version of the best database, "" before 3.6.
	Storage string `json:"storageVersion,omitempty"`
	// Minor is the minor version of etcd 3 that wrote the best member.
	Minor int  `json:"minor"`
	Auth  bool `json:"auth"`
	// Voters is their number in the configuration, Quorum what a decision needs, Startable how many voters' dirs can be
	// started.
	Voters    int `json:"voters"`
	Quorum    int `json:"quorum"`
	Startable int `json:"startable"`
	// LogStartsAtOne is true when the best member never took a raft snapshot: a new member would be sent its log, not
	// its database.
	LogStartsAtOne bool `json:"logStartsAtOne"`
	// Alarms are raised alarms as the best database has them.
	Alarms []evidence.AlarmFacts `json:"alarms"`
}

// Has asks whether the servers of the cluster follow a rule; unknown where the releases of their minor version
// disagree.
func (c *Cluster) Has(r *release.Rule) release.Answer { return release.AnyOf(c.Minor).Has(r) }

// raised reports whether an alarm is raised for any member.
func (c *Cluster) raised(alarm string) bool {
	return slices.ContainsFunc(c.Alarms, func(a evidence.AlarmFacts) bool { return a.Alarm == alarm })
}

// KnowsLearners reports whether the cluster's own servers know learners (3.4 and later).
func (c *Cluster) KnowsLearners() bool { return c.Has(release.Learners).Possible() }

// Majority is how many of n voters a decision takes.
func Majority(n int) int { return n/2 + 1 }

// Action is what the plan does to a member.
type Action string

// The actions.
const (
	// Best: its content is kept and it becomes the leader.
	Best Action = "best"
	// Keep: it stays as it is.
	Keep Action = "keep"
	// MendIt: its files are mended; it keeps its ID and its data.
	MendIt Action = "mend"
	// RebuildIt: it gets the rebuilt database.
	RebuildIt Action = "rebuild"
	// Start: it only lags; it is started and catches up.
	Start Action = "start"
	// Restart: it is stopped and started again on its own data dir, which mends stale rows in it.
	Restart Action = "restart"
	// Replace: it is removed, its data dir is moved aside, and it comes back empty, first as a learner.
	Replace Action = "replace"
	// Remove: it is removed from the configuration and does not come back.
	Remove Action = "remove"
	// Retire: the cluster has removed it already; its process is stopped and its data dir is moved aside.
	Retire Action = "retire"
	// Join: it ran as another cluster; its data dir is moved aside and it joins the best member's cluster.
	Join Action = "join"
	// StandIn: a new member on another host takes the place of a member that is removed after it.
	StandIn Action = "standby"
)

// Member is one member of the cluster, or a source that should be one.
type Member struct {
	// Name is the source's label; for members without a source, the name in the member list, else the ID.
	Name string `json:"name"`
	// NodeName is the member's own --name.
	NodeName   string     `json:"nodeName,omitempty"`
	ID         dumplog.ID `json:"id"`
	Learner    bool       `json:"learner,omitempty"`
	PeerURLs   []string   `json:"peerURLs"`
	ClientURLs []string   `json:"clientURLs,omitempty"`
	// Source is the label of its data dir among the sources, "" when there is none.
	Source string `json:"source,omitempty"`
	Action Action `json:"action"`
	Why    string `json:"why"`
	// Standby is the new member that takes this one's place, For the member whose place this new one takes.
	Standby string `json:"standby,omitempty"`
	For     string `json:"for,omitempty"`
	// RestartOn is the release that a restart must use to mend its data, "" when it needs none.
	RestartOn string `json:"restartOn,omitempty"`
	// Startable is true when a server may be started on a copy of its data dir; NotStartable says why not.
	Startable    bool   `json:"startable"`
	NotStartable string `json:"notStartable,omitempty"`
	// Obstacle is what prevents a start, "" for nothing. Steps depend on it, never on the text in NotStartable.
	Obstacle Obstacle `json:"obstacle,omitempty"`
	// Applied and Revision are those of its database, Lacks counts the committed effects missing in it.
	Applied  uint64 `json:"appliedIndex,omitempty"`
	Revision int64  `json:"revision,omitempty"`
	Lacks    int    `json:"lacks,omitempty"`
}

// ServerName is the --name that the member is started with.
func (m *Member) ServerName() string {
	if m.NodeName != "" {
		return m.NodeName
	}
	return m.Name
}

// Folder is the name of its data dir among those of the other members. A member that is retired may have the server
// name of its successor.
func (m *Member) Folder() string {
	if m.Action == Retire {
		return shell.FileName(m.Name) + "-" + m.ID.String()
	}
	return shell.FileName(m.ServerName())
}

// Way is one procedure of repair.
type Way struct {
	Mode        Mode `json:"mode"`
	Recommended bool `json:"recommended,omitempty"`
	Possible    bool `json:"possible"`
	// Uses is the procedure whose steps are done, on copies.
	Uses  Mode   `json:"uses,omitempty"`
	Why   string `json:"why"`
	Cost  *Cost  `json:"cost,omitempty"`
	Steps []Step `json:"steps,omitempty"`
}

// Way returns the procedure of that mode, nil when the plan has none.
func (p *Plan) Way(m Mode) *Way {
	for i := range p.Ways {
		if p.Ways[i].Mode == m {
			return &p.Ways[i]
		}
	}
	return nil
}

// Member returns the member of that name, nil when there is none.
func (p *Plan) Member(name string) *Member {
	for i := range p.Members {
		if p.Members[i].Name == name {
			return &p.Members[i]
		}
	}
	return nil
}

// Specs returns the sources as compare and evidence take them.
func (p *Plan) Specs() []evidence.Spec {
	out := make([]evidence.Spec, 0, len(p.Inputs))
	for _, in := range p.Inputs {
		out = append(out, evidence.Spec{Name: in.Name, Where: in.Where, WALDir: in.WALDir})
	}
	return out
}
