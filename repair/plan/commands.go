package plan

import (
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/shell"
)

// RehearseCommand is the command that tries the plan.
func RehearseCommand(file string) shell.Command {
	return shell.Format("etcd-medic repair rehearse {}", shell.Operand(file))
}

// StatusCommand is the command that shows the progress of the plan.
func StatusCommand(file string) shell.Command {
	return shell.Format("etcd-medic repair status {}", shell.Operand(file))
}

// DiagnoseCommand is the command that shows whether a repair succeeded.
func DiagnoseCommand() shell.Command { return shell.Format("etcd-medic diagnose <FRESH_COPIES>") }

// ApplyCommands are the commands that carry the plan out, the recommended way first.
func (p *Plan) ApplyCommands(file string) []shell.Command {
	var out []shell.Command
	for i := range p.Ways {
		if w := &p.Ways[i]; w.Possible && p.Mode != RehearseOnly && slices.Contains(applicable, w.Mode) {
			out = append(out, p.ApplyCommand(file, w.Mode, nil, shell.ToFill("OUT")))
		}
	}
	return out
}

// applicable are the ways that Apply knows.
var applicable = []Mode{MendFiles, Live, Clone, Reseed, Rebuild}

// ApplyCommand is the command that carries the plan out in a mode; out is where modes that write files write them.
func (p *Plan) ApplyCommand(file string, mode Mode, endpoints []string, out shell.Word) shell.Command {
	cmd := shell.Format("etcd-medic repair apply {} --mode {}", shell.Operand(file), string(mode))
	if mode != Live {
		return cmd.With("-o", out)
	}
	found := len(endpoints) > 0
	if !found {
		endpoints = p.clientURLs()
	}
	all := strings.Join(endpoints, ",")
	if all == "" {
		return cmd.Then(shell.Format("--endpoints <CLIENT_URLS>"))
	}
	cmd = cmd.With("--endpoints", all)
	for i := range p.Members {
		if m := &p.Members[i]; m.Action == StandIn && !found { // no data dir shows its client URL
			cmd = cmd.Then(shell.Format("--endpoints {}", shell.FillFor("CLIENT_URL_OF", m.Name)))
		}
	}
	if strings.Contains(all, "https://") {
		cmd = cmd.Then(shell.Format("--cacert <CA>.crt --cert <CLIENT>.crt --key <CLIENT>.key"))
	}
	if p.Cluster.Auth {
		cmd = cmd.Then(shell.Format("--user root"))
	}
	return cmd
}

// clientURLs are those that the members of the repaired cluster advertise, one each.
func (p *Plan) clientURLs() []string {
	var out []string
	for i := range p.Members {
		m := &p.Members[i]
		if len(m.ClientURLs) > 0 && m.Action != Retire && m.Action != Remove {
			out = append(out, m.ClientURLs[0])
		}
	}
	return out
}
