package cli

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render"
)

// version is set by the linker; without it the module version or the commit stands in.
var version = ""

// Version returns the version of this program as reports carry it.
func Version() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value[:min(len(s.Value), 12)]
		}
	}
	return info.Main.Version
}

func newVersionCmd(s *Streams) *cobra.Command {
	o := &output{io: s}
	cmd := &cobra.Command{
		Use:   "version",
		Short: "print the version",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if o.format == render.JSON || o.format == render.JSONL {
				return json.NewEncoder(s.Out).Encode(map[string]string{"name": "etcd-medic", "version": Version(), "go": runtime.Version()})
			}
			_, err := fmt.Fprintf(s.Out, "etcd-medic %s %s %s/%s\n", Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
	o.format = render.Table
	cmd.Flags().VarP(&formatFlag{&o.format}, "write-out", "w", "output format: table|json")
	return cmd
}
