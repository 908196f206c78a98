package htmlreport

import (
	"fmt"
	"io"
	"strings"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render"
)

// checklistView is the data of a checklist's template. All text in it is cleaned; the template escapes it.
type checklistView struct {
	*render.Checklist
	Tone, Progress, Licence string
	RunRows                 []runRow
	StepRows                []stepRow
}

type runRow struct{ Title, State, Begun, Last string }

type stepRow struct {
	render.ChecklistStep
	N        int
	Done     bool
	Tone, At string
}

// WriteChecklist writes a plan as a page to tick off.
func WriteChecklist(w io.Writer, c *render.Checklist) error {
	v := newChecklistView(c)
	nothing := struct {
		Timeline *int       `json:"timeline"`
		Storage  []struct{} `json:"storage"`
		Segments []struct{} `json:"segments"`
	}{nil, []struct{}{}, []struct{}{}}
	return writePage(w, "checklist.gohtml", "etcd-medic: repair plan, "+v.Way,
		func(licence string) any { v.Licence = licence; return v }, script{"data", nothing})
}

func newChecklistView(c *render.Checklist) *checklistView {
	own := *c
	v := &checklistView{Checklist: &own, Tone: "open", Progress: fmt.Sprintf("%d of %d steps are done", c.Ticked(),
		len(c.Steps))}
	if c.Finished {
		v.Tone = "good"
	} else if strings.HasSuffix(c.State, "failed") || strings.HasSuffix(c.State, "interrupted") {
		v.Tone = "bad"
	}
	for _, s := range []*string{&own.Summary, &own.Way, &own.WayWhy, &own.Keep, &own.KeepWhy, &own.Loses, &own.State,
		&own.Version, &own.Digest, &own.Tool} {
		*s = text(*s)
	}
	own.Summary, own.WayWhy, own.KeepWhy = upper(own.Summary), upper(own.WayWhy), upper(own.KeepWhy)
	for _, list := range []*[]string{&own.Unproven, &own.Save, &own.Cautions, &own.Other, &own.Next} {
		*list = cleaned(*list)
	}
	own.Lost, own.Members = nil, nil
	for _, row := range c.Lost {
		own.Lost = append(own.Lost, [4]string(cleaned(row[:])))
	}
	for _, m := range c.Members {
		own.Members = append(own.Members, render.ChecklistMember{Name: text(m.Name), ID: m.ID, Action: text(m.Action),
			Why: text(m.Why)})
	}
	for _, r := range c.Runs {
		v.RunRows = append(v.RunRows, runRow{Title: text(r.Title), State: text(r.State), Begun: render.When(r.Begun),
			Last: render.When(r.Last)})
	}
	for i := range c.Steps {
		v.StepRows = append(v.StepRows, newStepRow(&c.Steps[i], i+1))
	}
	return v
}

func newStepRow(s *render.ChecklistStep, n int) stepRow {
	r := stepRow{ChecklistStep: *s, N: n, Done: s.State == "done", At: render.When(s.At)}
	for _, f := range []*string{&r.ID, &r.Title, &r.Member, &r.Precondition, &r.Effect, &r.Undo, &r.Until, &r.State,
		&r.Detail} {
		*f = text(*f)
	}
	r.Tone = map[string]string{"done": "good", "failed": "bad", "begun": "open"}[s.State]
	r.Commands = nil
	for _, b := range s.Commands {
		r.Commands = append(r.Commands, render.ChecklistCommand{On: text(b.On), Run: render.Clean(b.Run),
			Note: text(b.Note)})
	}
	return r
}

func cleaned(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = text(s)
	}
	return out
}
