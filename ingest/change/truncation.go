package change

import (
	"fmt"

	"applier/storage/types"
)

// Truncation is a record that says that the source's table was emptied. It is no
// change of a row, and stands between those that came before and after it.
type Truncation struct {
	Part   int32
	Offset int64
	Time   int64 // as [Batch.Time]
	// Order has one value for each order_by column: the record's place in the order.
	Order []types.Datum
}

// String shows a truncation in tests and traces.
func (t *Truncation) String() string {
	if t == nil {
		return "none"
	}
	return fmt.Sprintf("partition %d offset %d time %d order %v", t.Part, t.Offset, t.Time, t.Order)
}
