package stats

import "math"

// student has the quantiles 0.975 of Student's t distribution with 1 to 30 degrees of freedom.
var student = [...]float64{
	12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
	2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
	2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
}

// Interval95 returns the mean and how far the interval goes to each side that contains the mean
// of the distribution with 95 % confidence, if samples are independent and about normal. Fewer
// than two samples have no interval: half is nil.
func Interval95(x []float64) (mean float64, half *float64) {
	if len(x) == 0 {
		return 0, nil
	}
	for _, v := range x {
		mean += v
	}
	n := float64(len(x))
	mean /= n
	if len(x) == 1 {
		return mean, nil
	}
	var squares float64
	for _, v := range x {
		squares += (v - mean) * (v - mean)
	}
	t := quantile975(len(x) - 1)
	h := t * math.Sqrt(squares/(n-1)/n)
	return mean, &h
}

// quantile975 is Student's t. Beyond the table it is the first terms of its expansion by 1/df
// (Cornish and Fisher), which are right to 0.001 there.
func quantile975(df int) float64 {
	if df <= len(student) {
		return student[df-1]
	}
	const z = 1.959964
	return z + (z*z*z+z)/(4*float64(df)) + (5*math.Pow(z, 5)+16*z*z*z+3*z)/(96*float64(df)*float64(df))
}
