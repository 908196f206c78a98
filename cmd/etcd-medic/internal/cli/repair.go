package cli

import "github.com/spf13/cobra"

const repairLong = `Repair never writes to what it reads: every result is a new path, and it is diagnosed again before it counts. Data dirs are moved
aside, never deleted.

plan, rehearse, apply, status and abort repair a whole cluster from the member that diagnose calls best:

  plan       read the sources and write down what would be done, and why
  rehearse   do it to copies, in a sandbox that reaches nothing outside
  apply      do it for real: into new data dirs, or against the running cluster
  status     show where a plan stands
  abort      say what was done, what was not, and how to go back

wal, db and meta change one thing in a copy of one member, say what is lost by it, and refuse where it would make members
differ.

Exit codes: 0 done, 1 could not read or write, 2 wrong usage, 5 refused: a precondition does not hold, 6 begun and not finished.`

const repairExample = `  etcd-medic repair plan node1=/copies/node1 node2=/copies/node2 node3=/copies/node3 -o plan.yaml
  etcd-medic repair rehearse plan.yaml
  etcd-medic repair apply plan.yaml --mode clone -o new-dirs
  etcd-medic repair status plan.yaml`

// newRepairCmd is the parent of everything that repairs; its sub-commands are listed here.
func newRepairCmd(s *Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "repair",
		Short:   "repair a cluster or one member, into new paths",
		Long:    repairLong,
		Example: repairExample,
		Args:    rootArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(repairCmds(s)...)
	cmd.Hidden = !cmd.HasSubCommands()
	return cmd
}

func repairCmds(s *Streams) []*cobra.Command {
	return []*cobra.Command{
		newRepairPlanCmd(s, runRepairPlan),
		newRepairRehearseCmd(s, runRepairRehearse),
		newRepairWALCmd(s),
		newRepairDBCmd(s),
		newRepairMetaCmd(s),
		newRepairApplyCmd(s, runRepairApply),
		newRepairStatusCmd(s, runRepairStatus),
		newRepairAbortCmd(s, runRepairAbort),
	}
}
