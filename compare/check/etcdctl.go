package check

import (
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/shell"
)

// AtEndpoint returns a command of etcdctl with the endpoint that it is for and the flags to log in, as far as the files
// show them. Other commands stay as they are, and so does one that has an endpoint. A command about a member is not
// sent to that member.
func (ss Sources) AtEndpoint(c shell.Command) shell.Command {
	words := c.Program()
	if len(words) == 0 || words[0] != "etcdctl" || slices.Contains(words, "--endpoints") {
		return c
	}
	var of *evidence.Member
	url := ""
	for _, m := range ss {
		if of != nil && m.ConsistentIndex() <= of.ConsistentIndex() {
			continue
		}
		if u := clientURL(m, words); u != "" {
			of, url = m, u
		}
	}
	if of == nil {
		return c.AfterProgram(shell.Format("--endpoints <CLIENT_URL>"))
	}
	flags := shell.Format("--endpoints {}", url).Then(certificates(url))
	if of.DB.Auth.Enabled {
		flags = flags.Then(shell.Format("--user root")) // etcdctl asks for the password
	}
	return c.AfterProgram(flags)
}

// clientURL returns a URL at which a voter of m's member list serves clients, m itself first; "" if m lists none. The
// member whose ID is among the words of a command is left out.
func clientURL(m *evidence.Member, words []string) string {
	if m.DB == nil {
		return ""
	}
	rows := slices.DeleteFunc(slices.Clone(m.DB.Members), func(r dumpdb.Member) bool {
		id := dumplog.ID(r.ID)
		return len(r.ClientURLs) == 0 || r.IsLearner || slices.Contains(words, id.String()) ||
			slices.Contains(m.Membership.Removed, id)
	})
	if len(rows) == 0 {
		return ""
	}
	own := slices.IndexFunc(rows, func(r dumpdb.Member) bool { return dumplog.ID(r.ID) == m.MemberID })
	return rows[max(own, 0)].ClientURLs[0]
}

// certificates are the flags with which a client connects to a URL.
func certificates(url string) shell.Command {
	if !strings.HasPrefix(url, "https:") {
		return shell.Command{}
	}
	return shell.Format("--cacert <CA>.crt --cert <CLIENT>.crt --key <CLIENT>.key")
}

// Reachable fills in the endpoints of a finding's remedies: those of the cluster of the members that it names.
func (ss Sources) Reachable(f *Finding) {
	if len(f.Remedy) == 0 {
		return
	}
	cluster := ss
	if named := ss.labelled(f.Members); len(named) > 0 {
		cluster = slices.DeleteFunc(slices.Clone(ss), func(m *evidence.Member) bool {
			return m.ClusterID != named[0].ClusterID
		})
	}
	for i := range f.Remedy {
		f.Remedy[i].Command = cluster.AtEndpoint(f.Remedy[i].Command)
	}
}

// labelled returns the members with these labels.
func (ss Sources) labelled(labels []string) Sources {
	wanted := make(map[string]bool, len(labels))
	for _, l := range labels {
		wanted[l] = true
	}
	return slices.DeleteFunc(slices.Clone(ss), func(m *evidence.Member) bool { return !wanted[m.Label()] })
}
