package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/shell"
)

// Mend is surgery on one member's data dir, with its own log and pages or with the help of others. It was tried on a
// scratch copy when the plan was made. If it works, it loses nothing that the logs among the sources hold.
type Mend struct {
	Member string `json:"member"`
	// Repairs are wal, db and meta, in the order in which they are made. With are the members that they copy from, none
	// when the member's own files suffice. Base is the backup on which its log is executed, "" for none.
	Repairs []string `json:"repairs"`
	With    []string `json:"with,omitempty"`
	Base    string   `json:"base,omitempty"`
	Works   bool     `json:"works"`
	// Why says what was done to the copy, or why it does not work.
	Why string `json:"why"`
	// Promise is what the copy held afterwards; rehearsal and application prove the same for their copies. It is nil if
	// the repair does not work.
	Promise *Promise `json:"promise,omitempty"`
	// made are the facts of the copy.
	made *evidence.Facts
}

// The kinds of surgery.
const (
	MendLog = "wal"
	MendDB  = "db"
	// MendRecords replaces records that are proven wrong by those of members that hold the right ones.
	MendRecords = "records"
	// MendMeta gives bucket members raft's own list.
	MendMeta = "meta"
)

// Promise is the state of a mended data dir: index, revision and hash of all keys of its database, and the end of its
// log.
type Promise struct {
	AppliedIndex uint64 `json:"appliedIndex"`
	LastIndex    uint64 `json:"lastIndex"`
	Revision     int64  `json:"revision"`
	Compact      int64  `json:"compactRevision"`
	HashKV       uint32 `json:"hashKV"`
}

// mended are the repairs that worked on the copy.
func (p *Plan) mended() []*Mend {
	var out []*Mend
	for i := range p.Mends {
		if p.Mends[i].Works {
			out = append(out, &p.Mends[i])
		}
	}
	return out
}

// MendOf is the repair that works for a source, nil when there is none.
func (p *Plan) MendOf(source string) *Mend {
	for _, m := range p.mended() {
		if m.Member == source {
			return m
		}
	}
	return nil
}

// ToMend are the members whose files are mended by MendFiles.
func (p *Plan) ToMend() []*Member {
	var out []*Member
	for i := range p.Members {
		m := &p.Members[i]
		x := p.MendOf(m.Source)
		if m.Source != "" && x != nil && (!m.Startable || x.rows()) && m.Action != Retire && m.Action != Remove &&
			m.Action != Join {
			out = append(out, m)
		}
	}
	return out
}

// rows reports whether the repair is only about rows, which do not prevent a start.
func (x *Mend) rows() bool { return slices.Contains(x.Repairs, MendMeta) }

// BesideMended are the other members that run with the mended ones: those that are not replaced and on whose data dirs
// servers start.
func (p *Plan) BesideMended() []*Member {
	var out []*Member
	mended := p.ToMend()
	for i := range p.Members {
		if m := &p.Members[i]; m.Source != "" && m.Startable && slices.Contains([]Action{Best, Keep, Start, Restart},
			m.Action) && !slices.Contains(mended, m) {
			out = append(out, m)
		}
	}
	return out
}

// mendFirst reports whether files are mended before anything else. No majority can be started, and either one can with
// the mended files, or the member that would be kept cannot be started either.
func (pr *procedures) mendFirst() bool {
	c, n := &pr.p.Cluster, 0
	for _, m := range pr.p.ToMend() {
		if !m.Learner {
			n++
		}
	}
	best := pr.p.Member(pr.p.Best.Name)
	if pr.rowsMended() {
		return true
	}
	return n > 0 && c.Startable < c.Quorum && (c.Startable+n >= c.Quorum || best == nil || !best.Startable)
}

// rowsMended reports whether a running cluster cannot remove wrong rows of bucket members, but mending can on all
// members, together with whatever prevents a start.
func (pr *procedures) rowsMended() bool {
	if pr.p.needsClone() == "" {
		return false
	}
	for i := range pr.p.Members {
		m := &pr.p.Members[i]
		x := pr.p.MendOf(m.Source)
		switch {
		case m.Zombie() || m.Action == Retire:
		case m.Source == "" || x == nil || !x.rows():
			return false
		case m.Action != Best && m.Action != Keep && m.Action != Start && (m.Action != Replace || m.Startable):
			return false
		}
	}
	return true
}

// mendWay is the procedure without a loss, as far as the sources show: each member that can be mended keeps its ID, its
// votes and its data.
func (pr *procedures) mendWay() Way {
	members := pr.p.ToMend()
	if len(members) == 0 {
		return Way{Mode: MendFiles, Why: "no member that stays has files that have to be mended"}
	}
	return Way{Mode: MendFiles, Possible: true, Steps: (&builder{p: pr.p, way: MendFiles}).mend(),
		Why: fmt.Sprintf("the files of %s can be mended %s, as was tried on a copy: the member keeps its ID, its "+
			"votes and its data", strings.Join(namesOf(members), ", "), pr.mendLoses())}
}

// parts names what is mended.
func (x *Mend) parts() string {
	var out []string
	for _, r := range x.Repairs {
		out = append(out, map[string]string{MendLog: "log", MendDB: "database", MendMeta: "member list"}[r])
	}
	return strings.Join(out, " and the ")
}

// from names the sources that the repair copies from.
func (x *Mend) from() string {
	from := "from its own files"
	if x.Base != "" {
		from = "from its own files and " + x.Base
	}
	if len(x.With) > 0 {
		from += " with " + strings.Join(x.With, ", ")
	}
	return from
}

// commands are the commands for doing the repairs by hand on the member's host. apart is true if its log is outside of
// its data dir; results have it inside.
func (x *Mend) commands(m *Member, apart bool) (out []Command) {
	from, last := shell.Format("<DATA_DIR>"), len(x.Repairs)-1
	if apart {
		from = shell.Format("<DATA_DIR> --wal-dir <WAL_DIR>")
	}
	for i, name := range x.Repairs {
		to := shell.Format("<DATA_DIR>.mended")
		if i < last {
			to = shell.Format("<DATA_DIR>.mended-{}", name)
		}
		run := shell.Format("etcd-medic repair wal").Then(from)
		switch {
		case name == MendMeta:
			run = shell.Format("etcd-medic repair meta --members-from-raft").Then(from)
		case name == MendDB && x.Base != "":
			run = shell.Format("etcd-medic repair db --rebuild").Then(from).With("--base",
				shell.FillFor("COPY_OF", x.Base))
		case name == MendDB:
			run = shell.Format("etcd-medic repair db --rebuild").Then(from)
		}
		run = run.Then(shell.Format("-o")).Then(to)
		for _, w := range x.With {
			if name == MendMeta {
				break // its own log has the list
			}
			run = run.Then(shell.Format("--with {}", shell.FillFor("COPY_OF", w)))
		}
		out, from = append(out, OnHost(m, "etcd-medic", run)), to
	}
	return append(out, OnHost(m, "etcd-medic", shell.Format("etcd-medic inspect <DATA_DIR>.mended")))
}

// namesOf are the names of members.
func namesOf(ms []*Member) []string {
	var out []string
	for _, m := range ms {
		out = append(out, m.Name)
	}
	return out
}
