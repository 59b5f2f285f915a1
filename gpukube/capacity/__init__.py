"""Finding machines: what the clouds tell about stock, prices, and quotas, side by side."""
