package soak

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// diagnosisPatience is how long one diagnosis of small data dirs may take.
const diagnosisPatience = 2 * time.Minute

// Diagnoser answers for sources.
type Diagnoser func(sources []Source) *Answer

// InProcess diagnoses with the library of this build.
func InProcess(sources []Source) (a *Answer) {
	defer func() {
		if r := recover(); r != nil {
			a = &Answer{Failure: fmt.Sprint("panic: ", r)}
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), diagnosisPatience)
	defer cancel()
	var specs []evidence.Spec
	for _, s := range sources {
		specs = append(specs, evidence.Spec{Name: s.Name, Where: s.Path})
	}
	r, err := compare.Diagnose(ctx, specs, compare.Options{Version: "soak", NoDigests: true})
	if err != nil {
		return &Answer{Failure: err.Error()}
	}
	doc, err := json.Marshal(r)
	if err != nil {
		return &Answer{Failure: err.Error()}
	}
	a = decode(doc)
	a.Plan, err = planOf(r, specs)
	if err != nil {
		return &Answer{Failure: "no plan: " + err.Error()}
	}
	return a
}

// planOf makes the plan that follows from a diagnosis, without trials; nil where it is refused.
func planOf(r *compare.Report, specs []evidence.Spec) (*Plan, error) {
	p, err := plan.From(r, specs, plan.Options{Compare: compare.Options{Version: "soak", NoDigests: true}})
	if refused := new(refusal.Error); errors.As(err, &refused) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	doc, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	out := &Plan{}
	return out, json.Unmarshal(doc, out)
}

// Program diagnoses with a built program.
func Program(path string) Diagnoser {
	return func(sources []Source) *Answer {
		ctx, cancel := context.WithTimeout(context.Background(), diagnosisPatience)
		defer cancel()
		args := []string{"diagnose", "-w", "json"}
		for _, s := range sources {
			args = append(args, s.Name+"="+s.Path)
		}
		cmd := exec.CommandContext(ctx, path, args...)
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		err := cmd.Run()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) || out.Len() == 0 {
			return &Answer{Failure: fmt.Sprintf("%v: %.1000s", err, errs.String())}
		}
		return decode(out.Bytes())
	}
}

func decode(doc []byte) *Answer {
	a := &Answer{}
	if err := json.Unmarshal(doc, a); err != nil {
		return &Answer{Failure: "the document cannot be read: " + err.Error()}
	}
	return a
}
