package plan

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/etcd-medic/etcd-medic/shell"
)

// The commands for those who do a step themselves. DATA_DIR is the member's --data-dir, usually /var/lib/etcd, WAL_DIR
// its --wal-dir. Words in capitals are what the operator has to fill in.

// Command is one thing to do by hand: a command and where it is typed, or a note.
type Command struct {
	// With is the tool: etcdctl, etcdutl, etcd-medic, systemd, static-pod, or note.
	With string `json:"with"`
	// On is the member on whose host it is done, "" for any place.
	On string `json:"on,omitempty"`
	// Run is the command as text for a shell, Args the same as a list.
	Run  string        `json:"run,omitempty"`
	Args shell.Command `json:"args,omitzero"`
	// Note is an instruction for people; it is not a command.
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

// Prefix is the text before the command, or the whole note. The host is quoted too, so that pasting it runs nothing.
func (c Command) Prefix() string {
	s := fmt.Sprintf("%-10s  ", c.With)
	if c.On != "" {
		s += "[" + shell.Quote(c.On) + "] "
	}
	return s + c.Note
}

// Fill replaces placeholders in the command.
func (c Command) Fill(values map[string]string) Command {
	c.Args = c.Args.Fill(values)
	c.Run = c.Args.String()
	return c
}

// plainText matches values that mean the same in a note whatever quotes are around them.
var plainText = regexp.MustCompile(`^[\w.:/=,\[\]@+-]+$`)

// SameInQuotes reports whether a value means the same in quotes and without.
func SameInQuotes(s string) bool { return plainText.MatchString(s) }

// FillNote replaces placeholders in a note, as far as their values mean the same in quotes and without.
func (c Command) FillNote(values map[string]string) Command {
	for word, v := range values {
		if SameInQuotes(v) {
			c.Note = regexp.MustCompile(`\b`+word+`\b`).ReplaceAllLiteralString(c.Note, v)
		}
	}
	return c
}

// Etcdctl is a call of etcdctl at a member.
func Etcdctl(m *Member) shell.Command {
	if len(m.ClientURLs) > 0 {
		return shell.Format("etcdctl --endpoints {}", m.ClientURLs[0])
	}
	return shell.Format("etcdctl --endpoints {}", shell.FillFor("CLIENT_URL_OF", m.Name))
}

// EtcdctlAccess says what etcdctl needs at a member of a cluster with TLS or auth, or of etcd 3.3, as a note; nil where
// it needs nothing.
func (p *Plan) EtcdctlAccess(m *Member) []Command {
	var needs []string
	if !p.Cluster.KnowsLearners() {
		needs = append(needs, "ETCDCTL_API=3 (for etcdctl 3.3)")
	}
	if m != nil && len(m.ClientURLs) > 0 && strings.HasPrefix(m.ClientURLs[0], "https://") {
		needs = append(needs, "ETCDCTL_CACERT, ETCDCTL_CERT and ETCDCTL_KEY")
	}
	if p.Cluster.Auth {
		needs = append(needs, "ETCDCTL_USER=root with ETCDCTL_PASSWORD, unless the certificate is that of root")
	}
	if len(needs) == 0 {
		return nil
	}
	return []Command{note("first set what etcdctl reads from its environment: %s",
		strings.Join(needs, "; "))}
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
