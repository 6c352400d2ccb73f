import java.util.HashMap;
import java.util.Map;

/** A program with a nested class, a map and strings. */
public class Work {
	interface Shape {
		double area();
	}

	static class Square implements Shape {
		final double side;

		Square(double side) {
			this.side = side;
		}

		public double area() {
			double sum = 0;
			for (int step = 0; step < 2000; step++)
				sum += Math.sqrt(side * step);
			return sum;
		}
	}

	static long hashing(int numbers) {
		Map<Integer, Long> sums = new HashMap<>();
		for (int number = 0; number < numbers; number++)
			sums.merge(number % 997, (long) number, Long::sum);
		long all = 0;
		for (long sum : sums.values())
			all += sum;
		return all;
	}

	static String strings(int numbers) {
		StringBuilder text = new StringBuilder();
		for (int number = 0; number < numbers; number++)
			text.append(Integer.toString(number));
		return text.toString();
	}

	public static void main(String[] words) {
		double areas = 0;
		long sums = 0;
		for (int round = 0; round < Integer.parseInt(words[0]); round++) {
			areas += new Square(round).area();
			sums += hashing(20000) + strings(3000).hashCode();
		}
		System.out.println(areas + " " + sums);
	}
}
