package merger

import (
	"time"

	"applier/merger/defaults"
	"applier/merger/expr"
)

// readDefaults sets the columns' defaults to those at a time: functions such as
// current_timestamp() have one value a batch, also when it is planned again.
func (a *Applier) readDefaults(at time.Time) error {
	list, err := defaults.Values(a.table.Schema(), &expr.Env{Now: at})
	if err != nil {
		return err
	}
	if a.planner.deletedAt >= 0 {
		list[a.planner.deletedAt] = nil
	}
	a.planner.defaults = list
	return nil
}
