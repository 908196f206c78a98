package plan

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/etcd-medic/etcd-medic/release"
	"github.com/etcd-medic/etcd-medic/shell"
)

// The commands for those who do a step themselves. DATA_DIR is the member's --data-dir, usually /var/lib/etcd. Words in
// capitals are what the operator has to fill in.

// Command is one thing to do by hand: a command and where it is typed, or a note.
type Command struct {
	// With is what it is done with: etcdctl, etcdutl, etcd-medic, systemd, static-pod, or note.
	With string `json:"with"`
	// On is the member on whose host it is done, "" for any place.
	On string `json:"on,omitempty"`
	// Run is the command as text for a shell, Args the same as a list.
	Run  string        `json:"run,omitempty"`
	Args shell.Command `json:"args,omitzero"`
	// Note is what there is to know; it is not a command.
	Note string `json:"note,omitempty"`
}

// Typed returns a command that can be typed anywhere.
func Typed(with string, c shell.Command) Command {
	return Command{With: with, Run: c.String(), Args: c}
}

// OnHost returns a command that is typed on a member's host.
func OnHost(m *Member, with string, c shell.Command) Command {
	out := Typed(with, c)
	out.On = m.Name
	return out
}

func note(format string, args ...any) Command {
	return Command{With: "note", Note: fmt.Sprintf(format, args...)}
}

// on returns the note as one for a member's host.
func (c Command) on(m *Member) Command {
	c.On = m.Name
	return c
}

// Prefix is what stands before the command, or the whole of a note. The host is quoted too: who pastes too much runs
// nothing of its name.
func (c Command) Prefix() string {
	s := fmt.Sprintf("%-10s  ", c.With)
	if c.On != "" {
		s += "[" + shell.Quote(c.On) + "] "
	}
	return s + c.Note
}

// Fill fills words of the command in.
func (c Command) Fill(values map[string]string) Command {
	c.Args = c.Args.Fill(values)
	c.Run = c.Args.String()
	return c
}

// plainText is what stands in a note as it is, whatever quotes are around it there.
var plainText = regexp.MustCompile(`^[\w.:/=,\[\]@+-]+$`)

// SameInQuotes tells whether a value means the same in quotes and without.
func SameInQuotes(s string) bool { return plainText.MatchString(s) }

// FillNote fills words of a note in, as far as their values mean the same in quotes and without.
func (c Command) FillNote(values map[string]string) Command {
	for word, v := range values {
		if SameInQuotes(v) {
			c.Note = regexp.MustCompile(`\b`+word+`\b`).ReplaceAllLiteralString(c.Note, v)
		}
	}
	return c
}

// Etcdctl is a call of etcdctl that asks a member.
func Etcdctl(m *Member) shell.Command {
	if len(m.ClientURLs) > 0 {
		return shell.Format("etcdctl --endpoints {}", m.ClientURLs[0])
	}
	return shell.Format("etcdctl --endpoints {}", shell.FillFor("CLIENT_URL_OF", m.Name))
}

func byHandBackup(best *Member) []Command {
	return []Command{
		Typed("etcdctl", Etcdctl(best).Then(shell.Format("snapshot save before-repair.db"))),
		Typed("etcd-medic", shell.Format("etcd-medic verify before-repair.db")),
	}
}

func byHandSave(m *Member) []Command {
	file := shell.FileName(m.Name) + "-before-repair.db"
	return []Command{
		Typed("etcdctl", Etcdctl(m).Then(shell.Format("snapshot save {}", file))),
		Typed("etcd-medic", shell.Format("etcd-medic compare before-repair.db {}", file)),
	}
}

func ByHandStart(m *Member) []Command {
	return []Command{
		OnHost(m, "systemd", startUnit),
		OnHost(m, "static-pod", startPod),
		Typed("etcdctl", Etcdctl(m).Then(statusTable)),
	}
}

func byHandMoveLeader(best *Member) []Command {
	return []Command{
		Typed("etcdctl", Etcdctl(best).Then(shell.Format("endpoint status --cluster -w table"))),
		Typed("etcdctl", shell.Format("etcdctl --endpoints <CLIENT_URL_OF_THE_LEADER> move-leader {}", best.ID)),
	}
}

// Fillers returns how many proposals make a log with default settings drop its start: up to 3.5 that happens with a
// raft snapshot, every --snapshot-count (100,000) entries; from 3.6 on every 100 entries.
func (c *Cluster) Fillers() int {
	switch {
	case c.Has(release.LogTrimmedOften).Certain():
		return 110
	case c.LogStartsAtOne:
		return 100_010
	}
	return 0
}

func byHandAdvance(best *Member, c *Cluster) []Command {
	n := c.Fillers()
	if n == 0 {
		return []Command{note("not needed: %s took a raft snapshot, so its log no longer starts at index 1", best.Name)}
	}
	loop := shell.Format("seq {} | while read -r i ; do",
		n).Then(Etcdctl(best)).Then(shell.Format("alarm list > /dev/null ; done"))
	out := []Command{Typed("etcdctl", loop)}
	if n > 1000 {
		out = append(out, note("quicker: restart %s once with a small --snapshot-count before the repair, and move "+
			"the leader to it again", best.Name))
	}
	return out
}

// The kubelet takes a while to end the container of a manifest that is gone; until then the data dir must not be
// touched.
var (
	stopUnit  = shell.Format("systemctl stop etcd")
	startUnit = shell.Format("systemctl start etcd")
	stopPod   = shell.Format("mv /etc/kubernetes/manifests/etcd.yaml /etc/kubernetes/etcd.yaml.aside ; while pgrep " +
		"-x etcd > /dev/null ; do sleep 1 ; done")
	startPod = shell.Format("mv /etc/kubernetes/etcd.yaml.aside /etc/kubernetes/manifests/etcd.yaml")

	statusTable = shell.Format("endpoint status -w table")
	hashTable   = shell.Format("endpoint hashkv --cluster -w table")
	setAside    = shell.Format("mv -T <DATA_DIR> <DATA_DIR>.before-repair")
)

func ByHandStop(m *Member) []Command {
	return []Command{
		OnHost(m, "systemd", stopUnit),
		OnHost(m, "static-pod", stopPod),
	}
}

func byHandRemove(best, m *Member) []Command {
	return []Command{Typed("etcdctl", Etcdctl(best).Then(shell.Format("member remove {}", m.ID)))}
}

func ByHandSetAside(m *Member) []Command {
	return []Command{OnHost(m, "systemd", setAside), OnHost(m, "static-pod", setAside),
		note("where DATA_DIR is a mount point: mv -T DATA_DIR/member DATA_DIR/member.before-repair")}
}

func ByHandAdd(best, m *Member, learner bool) []Command {
	add := Etcdctl(best).Then(shell.Format("member add"))
	if learner {
		add = add.With("--learner")
	}
	// What follows the two dashes is a name, also when it looks like a flag.
	return []Command{Typed("etcdctl", add.Then(shell.Format("--peer-urls={} -- {}", strings.Join(m.PeerURLs, ","),
		m.ServerName())))}
}

func ByHandStartEmpty(p *Plan, m *Member) []Command {
	return []Command{
		note("INITIAL_CLUSTER is the line that member add printed: the members that %s lists now, and %s=%s",
			p.Best.Name, m.ServerName(), strings.Join(m.PeerURLs, ",")),
		note(`set ETCD_INITIAL_CLUSTER_STATE=existing and ETCD_INITIAL_CLUSTER="INITIAL_CLUSTER" in the unit's environment, then:`).on(m),
		OnHost(m, "systemd", startUnit),
		note("or set --initial-cluster-state=existing and --initial-cluster=INITIAL_CLUSTER in " +
			"/etc/kubernetes/etcd.yaml.aside, then:").on(m),
		OnHost(m, "static-pod", startPod),
	}
}

func byHandWait(best, m *Member) []Command {
	return []Command{
		Typed("etcdctl", Etcdctl(m).Then(statusTable)),
		Typed("etcdctl", Etcdctl(best).Then(hashTable)),
		note("if it does not serve within a minute, this, once a second, wakes it:"),
		Typed("etcdctl", Etcdctl(best).Then(shell.Format("alarm list"))),
	}
}

func ByHandPromote(best *Member) []Command {
	return []Command{Typed("etcdctl", Etcdctl(best).Then(shell.Format("member promote <NEW_MEMBER_ID>")))}
}

func byHandVerify(p *Plan) []Command {
	diagnose := shell.Format("etcd-medic diagnose")
	for i := range p.Members {
		if m := &p.Members[i]; m.Action != Remove && m.Action != Retire && m.Standby == "" {
			diagnose = diagnose.Then(shell.Format("{}={}", shell.FileName(m.Name), shell.FillFor("COPY_OF", m.Name)))
		}
	}
	best := p.Member(p.Best.Name)
	return []Command{
		Typed("etcdctl", Etcdctl(best).Then(hashTable)),
		Typed("etcdctl", Etcdctl(best).Then(shell.Format("member list -w table"))),
		note("on fresh copies:"),
		Typed("etcd-medic", diagnose),
	}
}
