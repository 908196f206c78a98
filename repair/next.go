package repair

import (
	"path/filepath"
	"slices"
	"strings"

	"al.essio.dev/pkg/shellescape"
)

const (
	cmdRehearse = "etcd-medic repair rehearse "
	cmdApply    = "etcd-medic repair apply "
	cmdDiagnose = "etcd-medic diagnose FRESH_COPIES"
)

// ApplyCommands are the commands that carry the plan out, the recommended way first. Words in capitals are to be filled in.
func (p *Plan) ApplyCommands(file string) []string {
	var out []string
	for _, mode := range []Mode{Live, Clone, Reseed} {
		w := p.Way(mode)
		if w == nil || !w.Possible || p.Mode == RehearseOnly {
			continue
		}
		out = append(out, p.applyCommand(file, mode, nil, "OUT"))
	}
	return out
}

func (p *Plan) applyCommand(file string, mode Mode, endpoints []string, out string) string {
	cmd := cmdApply + shellescape.Quote(file) + " --mode " + string(mode)
	if mode != Live {
		return cmd + " -o " + shellescape.Quote(out)
	}
	if len(endpoints) == 0 {
		endpoints = p.clientURLs()
	}
	all := strings.Join(endpoints, ",")
	if all == "" {
		return cmd + " --endpoints CLIENT_URLS"
	}
	cmd += " --endpoints " + shellescape.Quote(all)
	if strings.Contains(all, "https://") {
		cmd += " --cacert CA.crt --cert CLIENT.crt --key CLIENT.key"
	}
	if p.Cluster.Auth {
		cmd += " --user root"
	}
	return cmd
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
func (st *Standing) next(p *Plan, file string, records []Record) []string {
	switch {
	case st.AtWork:
		return []string{}
	case len(st.Runs) == 0:
		return []string{cmdRehearse + shellescape.Quote(file)}
	}
	last := slices.MaxFunc(st.Runs, func(a, b Run) int { return a.Last.Compare(b.Last) })
	switch {
	case last.State != "interrupted" && last.State != "failed" && last.State != "reached":
		return append([]string{cmdRehearse + shellescape.Quote(file)}, p.ApplyCommands(file)...)
	case last.State == "reached" && last.Mode == rehearsal:
		return append([]string{}, p.ApplyCommands(file)...)
	case last.State == "reached":
		return []string{cmdDiagnose}
	case last.Mode == rehearsal:
		return []string{cmdRehearse + shellescape.Quote(file)}
	}
	out := "OUT"
	found := map[string]string{}
	for _, r := range records {
		for name, v := range r.Values {
			switch member, isEndpoint := strings.CutPrefix(name, "endpoint:"); {
			case r.Run != last.Run:
			case isEndpoint:
				found[member] = v
			case name == "out":
				out = v
			}
		}
	}
	var endpoints []string
	for i := range p.Members {
		if e := found[p.Members[i].Name]; e != "" {
			endpoints = append(endpoints, e)
		}
	}
	return []string{p.applyCommand(file, last.Mode, endpoints, out)}
}

// install tells how the new data dirs in out get to their places.
func (s *session) install(mode Mode, out string) {
	w := s.plan.Way(mode)
	after := false
	for i := range w.Steps {
		step := &w.Steps[i]
		for _, c := range step.ByHand {
			switch {
			case step.Kind == StepHandOut:
				c.Run = strings.NewReplacer("OUT/", quotedFolder(out), "OUT ", strings.TrimSuffix(quotedFolder(out), "/")+" ").Replace(c.Run)
				s.out.Install = append(s.out.Install, c)
			case after:
				s.out.Install = append(s.out.Install, c)
			}
		}
		after = after || step.Kind == StepHandOut
	}
}

// quotedFolder is a folder for a shell, so that a plain name can follow it.
func quotedFolder(dir string) string { return shellescape.Quote(filepath.Clean(absolute(dir))) + "/" }
