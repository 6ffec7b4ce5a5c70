//go:build itest

package itest

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"applier/itest/harness"
)

// rewriting are the rules of Spark's optimizer that compute constants and leave out what
// no result needs. Without them Spark computes an expression as it is written.
var rewriting = func() string {
	var names []string
	for name := range strings.FieldsSeq("NullPropagation NullDownPropagation ConstantFolding ConstantPropagation FoldablePropagation " +
		"BooleanSimplification SimplifyConditionals PushFoldableIntoBranches SimplifyBinaryComparison ReplaceNullWithFalseInPredicate OptimizeIn " +
		"SimplifyExtractValueOps SimplifyCasts SimplifyDateTimeConversions OptimizeCsvJsonExprs EliminateAggregateFilter LikeSimplification " +
		"ColumnPruning ReorderAssociativeOperator ConvertToLocalRelation UnwrapCastInBinaryComparison") {
		names = append(names, "org.apache.spark.sql.catalyst.optimizer."+name)
	}
	return strings.Join(names, ",")
}()

// asWritten runs statements in Spark without those rules.
func (s *sparkRun) asWritten(statements ...string) []harness.SQLAnswer {
	const key = "spark.sql.optimizer.excludedRules"
	answers, err := s.spark.Run(s.t.Context(), slices.Concat([]string{"SET " + key + "=" + rewriting}, statements, []string{"RESET " + key})...)
	require.NoError(s.t, err)
	require.Nil(s.t, answers[0].Error)
	return answers[1 : len(answers)-1]
}

// notNeeded is the difference over an error that only Spark's optimizer avoids.
const notNeeded = "Spark's optimizer leaves out a part that no result needs, and that fails"

// excuse says why two different answers to an expression over a table are right, "" if
// they are not.
func (s *sparkRun) excuse(x, table string, ours, theirs harness.SQLAnswer) string {
	if why := excuse(x, ours, theirs); why != "" {
		return why
	}
	if ours.Error != nil && classOf(s.asWritten(selectOf(x, table))[0]) == ours.Error.Class {
		return notNeeded
	}
	return ""
}

// unneeded does the same for the last statement of a story, which it plays in Spark alone.
func (s *sparkRun) unneeded(t *tableGen, story []sparkStep, ours harness.SQLAnswer) string {
	if ours.Error == nil {
		return ""
	}
	before := []string{"DROP TABLE " + t.name, t.theirs}
	for _, p := range story[:len(story)-1] {
		before = append(before, p.theirs)
	}
	_, err := s.spark.Run(s.t.Context(), before...)
	require.NoError(s.t, err)
	if classOf(s.asWritten(story[len(story)-1].theirs)[0]) == ours.Error.Class {
		return notNeeded
	}
	return ""
}

// arithmetic are the classes that Iceberg's one for an assigned number hides.
var arithmetic = []string{
	"CAST_OVERFLOW", "ARITHMETIC_OVERFLOW", "BINARY_ARITHMETIC_OVERFLOW", "DIVIDE_BY_ZERO", "REMAINDER_BY_ZERO", "NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION",
	"ArithmeticException", "DATETIME_OVERFLOW",
}

// excuse says why two different answers to a statement or an expression are right, "" if
// they are not. Each is listed in docs/sql.md or docs/expressions.md, or is a bug of Spark.
func excuse(statement string, ours, theirs harness.SQLAnswer) string {
	our, their := classOf(ours), classOf(theirs)
	merge := strings.HasPrefix(statement, "MERGE")
	switch {
	case their == "INTERNAL_ERROR":
		return "Spark fails and says that this is a bug of it"
	case our == "" && theirs.Error != nil && strings.Contains(theirs.Error.Message, "non-nullable"):
		return "Spark computes NULL for what it calls NOT NULL, and cannot hand it over"
	case strings.HasPrefix(our, "COLLECTION_SIZE_LIMIT_EXCEEDED.") && (strings.HasPrefix(their, "COLLECTION_SIZE_LIMIT_EXCEEDED.") || their == "ArrayIndexOutOfBoundsException"):
		return "too large an array: our limit is lower, and has a class of its own"
	case (our == "ARITHMETIC_OVERFLOW" || our == "ArithmeticException") && their == "" && (strings.Contains(ours.Error.Message, "is out of range") || strings.Contains(ours.Error.Message, "out of the range of timestamps")):
		return "a date or time that leaves its range: Spark wraps around"
	case strings.HasPrefix(our, "DATATYPE_MISMATCH.") && strings.HasPrefix(their, "INCOMPATIBLE_DATA_FOR_TABLE."):
		return "a type that no assignment takes: Paimon's cast and Iceberg's rule name it differently"
	case their == "INCOMPATIBLE_DATA_FOR_TABLE.CANNOT_SAFELY_CAST":
		return "a value for a column of another type: Paimon casts it, Iceberg refuses"
	case their == "CAST_OVERFLOW_IN_TABLE_INSERT" && slices.Contains(arithmetic, our):
		return "a number that its column does not hold: Iceberg's class, which also hides what failed before"
	case merge && our == "MERGE_CARDINALITY_VIOLATION" && their == "" && onlyDeletes(statement):
		return "ambiguity: Spark allows it where all that MATCHED does is DELETE"
	}
	return ""
}

// excuseRows does the same for what a table holds after a statement.
func excuseRows(statement string, ours, theirs harness.SQLAnswer) string {
	if strings.HasPrefix(statement, "MERGE") && !strings.Contains(statement, "WHEN MATCHED") && repeats(ours.Rows, theirs.Rows) {
		return "MERGE without MATCHED: Spark writes a row once a match"
	}
	return ""
}

func classOf(a harness.SQLAnswer) string {
	if a.Error == nil {
		return ""
	}
	return a.Error.Class
}

// onlyDeletes tells whether the one MATCHED clause of a MERGE is a DELETE without condition.
func onlyDeletes(merge string) bool {
	return strings.Count(merge, "WHEN MATCHED") == 1 && strings.Contains(merge, "WHEN MATCHED THEN DELETE")
}

// repeats tells whether the longer list holds nothing but the rows of the shorter,
// some of them more than once.
func repeats(short, long []json.RawMessage) bool {
	count := map[string]int{}
	for _, r := range short {
		count[string(r)]--
	}
	for _, r := range long {
		if _, ok := count[string(r)]; !ok {
			return false
		}
		count[string(r)]++
	}
	return !slices.ContainsFunc(short, func(r json.RawMessage) bool { return count[string(r)] < 0 })
}
