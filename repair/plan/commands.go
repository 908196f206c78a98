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

// Tried is the way that a rehearsal of the plan tries: one that writes data dirs, or Reseed for the steps that are done
// to copies in a sandbox. It is "" where nothing can be tried.
func (p *Plan) Tried() Mode {
	if p.Mode == RehearseOnly && p.Tries != "" {
		return p.Tries
	}
	return p.tried(p.Mode)
}

func (p *Plan) tried(mode Mode) Mode {
	switch mode {
	case MendFiles, Rebuild, Clone:
		if p.canDo(mode) {
			return mode
		}
	}
	for _, other := range []Mode{Reseed, Clone} {
		if p.canDo(other) {
			return other
		}
	}
	return ""
}

func (p *Plan) canDo(mode Mode) bool {
	w := p.Way(mode)
	return w != nil && w.Possible
}

// Shown is the way whose steps a reader is shown first: the recommended one, else what a rehearsal tries; nil for
// none.
func (p *Plan) Shown() *Way {
	if p.Mode != RehearseOnly {
		return p.Way(p.Mode)
	}
	w := p.Way(p.Tried())
	if w != nil && w.Uses != "" {
		return p.Way(w.Uses)
	}
	return w
}

// OtherWays are the procedures that a reader may look at instead of the recommended one. A plan that can only be
// rehearsed has none: its ways are those of the copies, whatever they promise for the cluster.
func (p *Plan) OtherWays() []*Way {
	var out []*Way
	for i := range p.Ways {
		if w := &p.Ways[i]; !w.Recommended && p.Mode != RehearseOnly {
			out = append(out, w)
		}
	}
	return out
}

// FirstCommands are what to do with a plan that was just made: first what it needs, then the rehearsal. A plan of which
// nothing can be tried on copies is a restore.
func (p *Plan) FirstCommands(file string) []shell.Command {
	out := p.Missing.commands()
	if p.Tried() != "" {
		return append(out, RehearseCommand(file))
	}
	if w := p.Way(p.Mode); w != nil {
		for i := range w.Steps {
			for _, c := range w.Steps[i].ByHand {
				if c.With == "etcd-medic" {
					out = append(out, c.Args)
				}
			}
		}
	}
	return out
}

// StatusCommand is the command that shows the progress of the plan.
func StatusCommand(file string) shell.Command {
	return shell.Format("etcd-medic repair status {}", shell.Operand(file))
}

// DiagnoseCommand is the command that shows whether a repair succeeded.
func DiagnoseCommand() shell.Command { return shell.Format("etcd-medic diagnose <FRESH_COPIES>") }

// ApplyCommands are the commands that carry the plan out, the recommended way first. Where something is missing they
// are those that plan again.
func (p *Plan) ApplyCommands(file string) []shell.Command {
	out := p.Missing.commands()
	for i := range p.Ways {
		if w := &p.Ways[i]; w.Possible && p.Mode != RehearseOnly && slices.Contains(applicable, w.Mode) {
			out = append(out, p.ApplyCommand(file, w.Mode, nil, shell.ToFill("OUT")))
		}
	}
	return out
}

// ApplyAfter are the commands to choose from after a way was rehearsed: those of that way, and those of the others.
// Where that way cannot be applied, or something is missing, all commands are the first.
func (p *Plan) ApplyAfter(rehearsed Mode, file string) (own, others []shell.Command) {
	all := p.ApplyCommands(file)
	tried := p.ApplyCommand(file, rehearsed, nil, shell.ToFill("OUT")).String()
	i := slices.IndexFunc(all, func(c shell.Command) bool { return c.String() == tried })
	if i < 0 || p.Missing != nil {
		return all, nil
	}
	return all[i : i+1], slices.Concat(all[:i], all[i+1:])
}

// applicable are the ways that Apply knows.
var applicable = []Mode{MendFiles, Live, Clone, Reseed, Rebuild}

// ApplyCommand is the command that carries the plan out in a mode; out is where modes that write files write them.
func (p *Plan) ApplyCommand(file string, mode Mode, endpoints []string, out shell.Word) shell.Command {
	cmd := applyCommand(file, mode)
	if mode == Reseed { // the server that writes the new data dirs decides which servers can open them
		return cmd.With("-o", out).With("--etcd-binary", shell.ToFill("ETCD_BINARY"))
	}
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

func applyCommand(file string, mode Mode) shell.Command {
	return shell.Format("etcd-medic repair apply {} --mode {}", shell.Operand(file), string(mode))
}

// LiveAgain is the command that continues a live repair with the flags of an earlier one.
func LiveAgain(file string, flags shell.Command) shell.Command {
	return applyCommand(file, Live).Then(flags)
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
