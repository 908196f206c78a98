package run

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/shell"
)

// next are the commands that continue with the plan.
func (st *Standing) next(p *plan.Plan, file string, records []Record) []shell.Command {
	switch {
	case st.AtWork:
		return []shell.Command{}
	case len(st.Runs) == 0:
		return p.FirstCommands(file)
	}
	last := st.Newest()
	switch {
	case last.State != "interrupted" && last.State != "failed" && last.State != "reached":
		return append([]shell.Command{plan.RehearseCommand(file)}, p.ApplyCommands(file)...)
	case last.State == "reached" && last.Mode == rehearsal:
		return append([]shell.Command{}, p.ApplyCommands(file)...)
	case last.State == "reached":
		return []shell.Command{plan.DiagnoseCommand()}
	case last.Mode == rehearsal:
		return []shell.Command{plan.RehearseCommand(file)}
	}
	out, binary := shell.ToFill("OUT"), ""
	var flags shell.Command
	found := map[string]string{}
	for _, r := range records {
		for name, v := range r.Values {
			switch member, isEndpoint := strings.CutPrefix(name, "endpoint:"); {
			case r.Run != last.Run:
			case isEndpoint:
				found[member] = v
			case name == "out":
				out = shell.Text(v)
			case name == "binary":
				binary = v
			case name == flagsValue:
				flags = flagsOf(v)
			}
		}
	}
	if last.Mode == plan.Live && !flags.IsZero() {
		st.NextComplete = true
		return []shell.Command{plan.LiveAgain(file, flags)}
	}
	var endpoints []string
	for i := range p.Members {
		if e := found[p.Members[i].Name]; e != "" {
			endpoints = append(endpoints, e)
		}
	}
	cmd := p.ApplyCommand(file, last.Mode, endpoints, out)
	if binary != "" {
		cmd = cmd.Fill(map[string]string{"ETCD_BINARY": binary})
	}
	return []shell.Command{cmd}
}

// flagsOf reads the flags that a journal holds, none if it is not known what they mean.
func flagsOf(v string) shell.Command {
	var c shell.Command
	if json.Unmarshal([]byte(v), &c) != nil {
		return shell.Command{}
	}
	return c
}

// Newest is the run with the newest line; there must be one. A run that was refused before its first step says nothing
// of what is to be done while an earlier one changed something, or reached its goal.
func (st *Standing) Newest() Run {
	last := st.Runs[st.last]
	if last.State != stateGivenUp || len(last.Steps) > 0 {
		return last
	}
	for _, r := range slices.Backward(st.Runs) {
		if r.Mode != rehearsal && len(r.Steps) > 0 {
			if r.State == stateGivenUp {
				break
			}
			return r
		}
	}
	return last
}

// install says how to put the new data dirs in out in place.
func (s *session) install(mode plan.Mode, out string) {
	w := s.plan.Way(mode)
	after, dir := false, filepath.Clean(absolute(out))
	for i := range w.Steps {
		step := &w.Steps[i]
		for _, c := range step.ByHand {
			switch {
			case step.Kind == plan.StepHandOut:
				if c.Note == plan.CopyOut {
					c.Note = "first copy " + dir + " to every host, under the same path"
				}
				s.out.Install = append(s.out.Install, c.Fill(map[string]string{"OUT": dir}))
			case after:
				s.out.Install = append(s.out.Install, c)
			}
		}
		after = after || step.Kind == plan.StepHandOut
	}
}
