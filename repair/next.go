package repair

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/shell"
)

// RehearseCommand is the command that tries the plan.
func RehearseCommand(file string) shell.Command {
	return shell.Format("etcd-medic repair rehearse {}", shell.Operand(file))
}

// StatusCommand is the command that shows where the plan stands.
func StatusCommand(file string) shell.Command {
	return shell.Format("etcd-medic repair status {}", shell.Operand(file))
}

// DiagnoseCommand is the command that shows whether a repair has done its work.
func DiagnoseCommand() shell.Command { return shell.Format("etcd-medic diagnose <FRESH_COPIES>") }

// ApplyCommands are the commands that carry the plan out, the recommended way first.
func (p *Plan) ApplyCommands(file string) []shell.Command {
	var out []shell.Command
	for i := range p.Ways {
		if w := &p.Ways[i]; w.Possible && p.Mode != RehearseOnly && slices.Contains(applicable, w.Mode) {
			out = append(out, p.applyCommand(file, w.Mode, nil, shell.ToFill("OUT")))
		}
	}
	return out
}

// applicable are the ways that Apply knows.
var applicable = []Mode{MendFiles, Live, Clone, Reseed, Rebuild}

func (p *Plan) applyCommand(file string, mode Mode, endpoints []string, out shell.Word) shell.Command {
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
		if m := &p.Members[i]; m.Action == StandIn && !found { // no data dir tells its client URL
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

// texts are commands as text.
func texts(commands []shell.Command) []string {
	out := make([]string, len(commands))
	for i, c := range commands {
		out[i] = c.String()
	}
	return out
}

// clientURLs are those that the members to be advertise: one each.
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

// next are the commands that lead on from where the plan stands.
func (st *Standing) next(p *Plan, file string, records []Record) []shell.Command {
	switch {
	case st.AtWork:
		return []shell.Command{}
	case len(st.Runs) == 0:
		return []shell.Command{RehearseCommand(file)}
	}
	last := slices.MaxFunc(st.Runs, func(a, b Run) int { return a.Last.Compare(b.Last) })
	switch {
	case last.State != "interrupted" && last.State != "failed" && last.State != "reached":
		return append([]shell.Command{RehearseCommand(file)}, p.ApplyCommands(file)...)
	case last.State == "reached" && last.Mode == rehearsal:
		return append([]shell.Command{}, p.ApplyCommands(file)...)
	case last.State == "reached":
		return []shell.Command{DiagnoseCommand()}
	case last.Mode == rehearsal:
		return []shell.Command{RehearseCommand(file)}
	}
	out := shell.ToFill("OUT")
	found := map[string]string{}
	for _, r := range records {
		for name, v := range r.Values {
			switch member, isEndpoint := strings.CutPrefix(name, "endpoint:"); {
			case r.Run != last.Run:
			case isEndpoint:
				found[member] = v
			case name == "out":
				out = shell.Text(v)
			}
		}
	}
	var endpoints []string
	for i := range p.Members {
		if e := found[p.Members[i].Name]; e != "" {
			endpoints = append(endpoints, e)
		}
	}
	return []shell.Command{p.applyCommand(file, last.Mode, endpoints, out)}
}

// install tells how the new data dirs in out get to their places.
func (s *session) install(mode Mode, out string) {
	w := s.plan.Way(mode)
	after, dir := false, filepath.Clean(absolute(out))
	for i := range w.Steps {
		step := &w.Steps[i]
		for _, c := range step.ByHand {
			switch {
			case step.Kind == StepHandOut:
				if c.Note == copyOut {
					c.Note = "first copy " + dir + " to every host, under the same path"
				}
				s.out.Install = append(s.out.Install, c.fill(map[string]string{"OUT": dir}))
			case after:
				s.out.Install = append(s.out.Install, c)
			}
		}
		after = after || step.Kind == StepHandOut
	}
}
