package run

import (
	"path/filepath"
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
	last := st.Runs[st.last]
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
	return []shell.Command{p.ApplyCommand(file, last.Mode, endpoints, out)}
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
