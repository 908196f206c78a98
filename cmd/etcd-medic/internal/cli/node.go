package cli

import "github.com/spf13/cobra"

const nodeLong = `Run etcd servers on copies of data dirs, as the original cluster, in a sandbox without network access.

Exit codes: those of its sub-commands.`

const nodeExample = `  etcd-medic node run node1=/copies/node1 node2=/copies/node2 node3=/copies/node3`

// newNodeCmd returns the parent of the commands that run servers.
func newNodeCmd(s *Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "node",
		Short:   "run copies of data dirs as a cluster without network access",
		Long:    nodeLong,
		Example: nodeExample,
		Args:    rootArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newNodeRunCmd(s, runNodeRun))
	return cmd
}
