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
	return decode(doc)
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
