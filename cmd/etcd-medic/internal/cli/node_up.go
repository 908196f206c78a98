package cli

import (
	"strings"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render"
	"github.com/etcd-medic/etcd-medic/node"
	"github.com/etcd-medic/etcd-medic/shell"
)

// upDocument says how to connect to the members of a sandbox.
type upDocument struct {
	SchemaVersion int `json:"schemaVersion"`
	// Server is the server program, Isolation namespace or proxy.
	Server    string `json:"server"`
	Isolation string `json:"isolation"`
	// Endpoints are those of the running members; CACert, Cert and Key are the files for a client.
	Endpoints []string   `json:"endpoints"`
	CACert    string     `json:"cacert"`
	Cert      string     `json:"cert"`
	Key       string     `json:"key"`
	Members   []upMember `json:"members"`
	// Etcdctl is the command line without its sub-command, quoted for a shell; Env are the equivalent variables.
	Etcdctl     string            `json:"etcdctl"`
	EtcdctlArgs shell.Command     `json:"etcdctlArgs"`
	Env         map[string]string `json:"env"`
}

type upMember struct {
	Name     string `json:"name"`
	Endpoint string `json:"endpoint"`
	Log      string `json:"log"`
	DataDir  string `json:"dataDir"`
	// Ended says how its process ended, absent while it runs.
	Ended string `json:"ended,omitempty"`
}

// up describes a sandbox with running members.
func up(s *node.Sandbox, flags []string) *upDocument {
	etcdctl := shell.Format("etcdctl")
	d := &upDocument{SchemaVersion: 1, Server: s.Server().String(), Isolation: string(s.Isolation()),
		Members: []upMember{}, Env: map[string]string{}}
	for _, f := range flags {
		name, value, _ := strings.Cut(strings.TrimPrefix(f, "--"), "=")
		etcdctl = etcdctl.With("--" + name + "=" + value)
		d.Env["ETCDCTL_"+strings.ToUpper(name)] = value
	}
	d.Etcdctl, d.EtcdctlArgs = etcdctl.String(), etcdctl
	d.Endpoints = strings.Split(d.Env["ETCDCTL_ENDPOINTS"], ",")
	d.CACert, d.Cert, d.Key = d.Env["ETCDCTL_CACERT"], d.Env["ETCDCTL_CERT"], d.Env["ETCDCTL_KEY"]
	for _, m := range s.Members() {
		row := upMember{Name: m.Name(), Endpoint: m.Endpoint(), Log: m.LogFile(), DataDir: m.Config().DataDir}
		if exit, ended := m.Exited(); ended {
			row.Ended = exit.String()
		}
		d.Members = append(d.Members, row)
	}
	return d
}

// upSheet is the same as text.
func upSheet(d *upDocument) render.Sheet {
	members := render.Section{Title: "members", Head: []string{"name", "endpoint", "log"}}
	for _, m := range d.Members {
		where := m.Endpoint
		if m.Ended != "" {
			where = "ended: " + m.Ended
		}
		members.Rows = append(members.Rows, []string{m.Name, where, m.Log})
	}
	return render.Sheet{Sections: []render.Section{
		{Pairs: [][2]string{{"server", d.Server}, {"isolation", d.Isolation}}},
		members,
		{Title: "look around", Commands: render.Prompts(d.EtcdctlArgs.Then(shell.Format("endpoint status -w table"))),
			After: []string{"^C ends it"}},
	}}
}
