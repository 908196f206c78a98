package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// manifest is what counts of a manifest: the pod that it makes.
type manifest struct {
	kind   string
	pod    *corev1.PodSpec
	claims []string
}

// kinds are the objects that manifests are read as, by apiVersion and kind, with Kubernetes' own types.
var kinds = map[string]func() (object any, pod func() *corev1.PodSpec){
	"apps/v1 Deployment": func() (any, func() *corev1.PodSpec) {
		o := &appsv1.Deployment{}
		return o, func() *corev1.PodSpec { return &o.Spec.Template.Spec }
	},
	"apps/v1 StatefulSet": func() (any, func() *corev1.PodSpec) {
		o := &appsv1.StatefulSet{}
		return o, func() *corev1.PodSpec { return &o.Spec.Template.Spec }
	},
	"batch/v1 Job": func() (any, func() *corev1.PodSpec) {
		o := &batchv1.Job{}
		return o, func() *corev1.PodSpec { return &o.Spec.Template.Spec }
	},
	"batch/v1 CronJob": func() (any, func() *corev1.PodSpec) {
		o := &batchv1.CronJob{}
		return o, func() *corev1.PodSpec { return &o.Spec.JobTemplate.Spec.Template.Spec }
	},
}

// parse reads one manifest as an API server with strict validation does: unknown and repeated fields are errors.
func parse(b []byte) (manifest, error) {
	var meta metav1.TypeMeta
	if err := yaml.Unmarshal(b, &meta); err != nil {
		return manifest{}, err
	}
	kind := meta.APIVersion + " " + meta.Kind
	object := kinds[kind]
	if object == nil {
		return manifest{}, fmt.Errorf("%q is no kind that is shipped", kind)
	}
	o, pod := object()
	if err := yaml.UnmarshalStrict(b, o); err != nil {
		return manifest{}, err
	}
	m := manifest{kind: kind, pod: pod()}
	if s, ok := o.(*appsv1.StatefulSet); ok {
		for i := range s.Spec.VolumeClaimTemplates {
			m.claims = append(m.claims, s.Spec.VolumeClaimTemplates[i].Name)
		}
	}
	return m, nil
}

var yamlBlock = regexp.MustCompile("(?s)\n```yaml\n(apiVersion: .*?)\n```")

// manifests reads all manifests in deploy and in the documents.
func manifests(t *testing.T) map[string]manifest {
	t.Helper()
	root, texts := evidencetest.Root(t), map[string][]byte{}
	for _, pattern := range []string{"deploy/*/*.yaml", "docs/*.md"} {
		files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			name, _ := filepath.Rel(root, f)
			if filepath.Ext(f) == ".md" {
				for n, m := range yamlBlock.FindAllSubmatch(b, -1) {
					texts[fmt.Sprintf("%s, block %d", filepath.ToSlash(name), n+1)] = m[1]
				}
			} else if filepath.Base(f) != "rules.yaml" { // Prometheus', which .tools/rules reads
				texts[filepath.ToSlash(name)] = b
			}
		}
	}
	out := map[string]manifest{}
	for name, b := range texts {
		m, err := parse(b)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		out[name] = m
	}
	return out
}

// TestManifestsOfKubernetes: manifests are objects of Kubernetes, what they mount is there, and probes ask ports that
// are.
func TestManifestsOfKubernetes(t *testing.T) {
	all := manifests(t)
	for name, m := range all {
		volumes := slices.Clone(m.claims)
		for i := range m.pod.Volumes {
			volumes = append(volumes, m.pod.Volumes[i].Name)
		}
		for i := range m.pod.Containers {
			c := &m.pod.Containers[i]
			for _, v := range c.VolumeMounts {
				if !slices.Contains(volumes, v.Name) {
					t.Errorf("%s: %s mounts %s, which no volume is called", name, c.Name, v.Name)
				}
			}
			if p := c.LivenessProbe; p != nil && !slices.ContainsFunc(c.Ports, func(q corev1.ContainerPort) bool {
				return q.Name == p.HTTPGet.Port.StrVal
			}) {
				t.Errorf("%s: no port of %s is called %s", name, c.Name, p.HTTPGet.Port.StrVal)
			}
		}
	}
	for name, kind := range map[string]string{"deploy/watch/deployment.yaml": "apps/v1 Deployment",
		"deploy/watch/sidecar.yaml": "apps/v1 StatefulSet", "deploy/collect/job.yaml": "batch/v1 Job",
		"deploy/verify/indexed-job.yaml": "batch/v1 Job", "docs/BACKUPS.md, block 1": "batch/v1 CronJob"} {
		if all[name].kind != kind {
			t.Errorf("%s is %q, want %q", name, all[name].kind, kind)
		}
	}
	for _, bad := range []string{"apiVersion: batch/v1\nkind: Job\nspec: {tmplate: {}}",
		"apiVersion: batch/v1\nkind: Job\nspec: {parallelism: many}", "apiVersion: v2\nkind: Job"} {
		if _, err := parse([]byte(bad)); err == nil {
			t.Errorf("%q is taken for a manifest", bad)
		}
	}
}

// TestShippedManifests: commands, flags and variables of the manifests exist, the command takes them, and containers
// write nowhere but into their volumes.
func TestShippedManifests(t *testing.T) {
	seen := map[string]bool{}
	for file, m := range manifests(t) {
		for i := range m.pod.Containers {
			c := &m.pod.Containers[i]
			args := slices.Concat(c.Command, c.Args)
			if name, _, _ := strings.Cut(c.Image, ":"); name == "etcd-medic" && len(c.Command) == 0 {
				args = append([]string{"etcd-medic"}, args...) // the entry point of the image
			}
			if len(args) < 2 || args[0] != "etcd-medic" {
				continue
			}
			env := map[string]string{}
			for _, e := range c.Env {
				env[e.Name] = e.Value
			}
			var errs bytes.Buffer
			s := &Streams{Out: io.Discard, Err: &errs, Getenv: func(n string) string { return env[n] }}
			cmd, rest, err := newRoot(s).Find(expandIndex(args[1:]))
			if err != nil {
				t.Errorf("%s: %v", file, err)
				continue
			}
			seen[cmd.Name()] = true
			if err := cmd.ParseFlags(rest); err != nil {
				t.Errorf("%s: %v", file, err)
			}
			if err := setFromEnv(cmd, s); err != nil || errs.Len() > 0 {
				t.Errorf("%s: %v %s", file, err, errs.String())
			}
			for name := range env {
				flag := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, "ETCD_MEDIC_"), "_", "-"))
				if f := cmd.Flags().Lookup(flag); f == nil || !f.Changed {
					t.Errorf("%s: %s sets no flag of %s", file, name, cmd.Name())
				}
			}
			if s := c.SecurityContext; s == nil || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem {
				t.Errorf("%s: %s may write to its root", file, c.Name)
			}
			if cmd.Name() == "watch" && (c.LivenessProbe == nil || c.LivenessProbe.HTTPGet.Path != "/healthz") {
				t.Errorf("%s: %s has no liveness probe", file, c.Name)
			}
		}
	}
	for _, name := range []string{"collect", "watch", "verify"} {
		if !seen[name] {
			t.Errorf("no manifest runs %s", name)
		}
	}
}

// expandIndex does what Kubernetes does with the variable of an Indexed Job.
func expandIndex(args []string) []string {
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = strings.ReplaceAll(a, "$(JOB_COMPLETION_INDEX)", "3")
	}
	return out
}
